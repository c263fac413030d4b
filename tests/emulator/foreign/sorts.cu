#ifndef FAULT
#define FAULT 0
#endif
typedef unsigned int uint;
// Bitonic, one block, shared memory.
__device__ inline void Comparator(uint& keyA, uint& valA, uint& keyB, uint& valB,
                                  uint dir) {
    uint t;
    if ((keyA > keyB) == dir) {
        t = keyA; keyA = keyB; keyB = t;
        t = valA; valA = valB; valB = t;
    }
}

extern "C" __global__ void bitonic_shared(uint *keys, uint *vals, uint dir)
{
    __shared__ uint s_key[512];
    __shared__ uint s_val[512];
    s_key[threadIdx.x] = keys[threadIdx.x];
    s_val[threadIdx.x] = vals[threadIdx.x];
    s_key[threadIdx.x + 256] = keys[threadIdx.x + 256];
    s_val[threadIdx.x + 256] = vals[threadIdx.x + 256];
    for (uint size = 2; size < 512; size <<= 1) {
        uint ddd = dir ^ ((threadIdx.x & (size / 2)) != 0);
        for (uint stride = size / 2; stride > 0; stride >>= 1) {
#if FAULT != 1
            __syncthreads();
#endif
            uint pos = 2 * threadIdx.x - (threadIdx.x & (stride - 1));
            Comparator(s_key[pos], s_val[pos], s_key[pos + stride], s_val[pos + stride],
                       ddd);
        }
    }
    for (uint stride = 256; stride > 0; stride >>= 1) {
        __syncthreads();
        uint pos = 2 * threadIdx.x - (threadIdx.x & (stride - 1));
        Comparator(s_key[pos], s_val[pos], s_key[pos + stride], s_val[pos + stride],
                   dir);
    }
    __syncthreads();
    keys[threadIdx.x] = s_key[threadIdx.x];
    vals[threadIdx.x] = s_val[threadIdx.x];
    keys[threadIdx.x + 256] = s_key[threadIdx.x + 256];
    vals[threadIdx.x + 256] = s_val[threadIdx.x + 256];
}

// One step of the global bitonic network, as in countless gists.
extern "C" __global__ void bitonic_sort_step(float *dev_values, int j, int k)
{
  unsigned int i, ixj;
  i = threadIdx.x + blockDim.x * blockIdx.x;
  ixj = i^j;
#if FAULT == 2
  if (1) {
#else
  if ((ixj)>i) {
#endif
    if ((i&k)==0) {
      if (dev_values[i]>dev_values[ixj]) {
        float temp = dev_values[i];
        dev_values[i] = dev_values[ixj];
        dev_values[ixj] = temp;
      }
    }
    if ((i&k)!=0) {
      if (dev_values[i]<dev_values[ixj]) {
        float temp = dev_values[i];
        dev_values[i] = dev_values[ixj];
        dev_values[ixj] = temp;
      }
    }
  }
}

// Odd-even transposition until a round changes nothing.
extern "C" __global__ void odd_even(int* a, int n) {
    extern __shared__ int s[];
    __shared__ int swapped;
    int t = threadIdx.x;
    for (int i = t; i < n; i += blockDim.x) s[i] = a[i];
    do {
        __syncthreads();
        if (t == 0) swapped = 0;
#if FAULT != 3
        __syncthreads();
#endif
        for (int phase = 0; phase < 2; ++phase) {
            int i = 2 * t + phase;
            if (i + 1 < n && s[i] > s[i + 1]) {
                int x = s[i]; s[i] = s[i + 1]; s[i + 1] = x;
                swapped = 1;
            }
            __syncthreads();
        }
    } while (swapped);
    for (int i = t; i < n; i += blockDim.x) a[i] = s[i];
}

// One radix pass of 4 bits within a block by ballots: a stable rank per digit.
extern "C" __global__ void radix_pass(const unsigned* in, unsigned* out, int shift,
                                      int n) {
    __shared__ int counts[16][8];
    __shared__ int start[16];
    const int t = threadIdx.x, lane = t & 31, warp = t >> 5, warps = blockDim.x >> 5;
    const unsigned key = t < n ? in[t] : 0xffffffffu;
    const int digit = t < n ? (key >> shift) & 15 : 16;
    unsigned same = __activemask();
    same = ~0u;
    for (int bit = 0; bit < 5; ++bit) {
        unsigned vote = __ballot_sync(~0u, digit >> bit & 1);
        same &= digit >> bit & 1 ? vote : ~vote;
    }
    const int rank = __popc(same & ((1u << lane) - 1));
#if FAULT != 4
    for (int d = t; d < 16 * 8; d += blockDim.x) (&counts[0][0])[d] = 0;
    __syncthreads();
#endif
    if (rank == 0 && digit < 16) counts[digit][warp] = __popc(same);
    __syncthreads();
    if (t < 16) {
        int sum = 0;
        for (int w = 0; w < warps; ++w) {
            int c = counts[t][w];
            counts[t][w] = sum;
            sum += c;
        }
        start[t] = sum;
    }
    __syncthreads();
    if (t == 0) {
        int sum = 0;
        for (int d = 0; d < 16; ++d) {
            int c = start[d];
            start[d] = sum;
            sum += c;
        }
    }
    __syncthreads();
    if (t < n) out[start[digit] + counts[digit][warp] + rank] = key;
}

// Merge path: each thread finds its diagonal by bisection, then merges a few in
// sequence.
namespace mp {
template <class It, class Less>
__device__ int split(It a, int na, It b, int nb, int diag, Less less) {
    int lo = max(0, diag - nb), hi = min(diag, na);
    while (lo < hi) {
        int mid = (lo + hi) >> 1;
        if (!less(b[diag - 1 - mid], a[mid])) lo = mid + 1; else hi = mid;
    }
    return lo;
}
struct Smaller {
    template <class T> __device__ bool operator()(T const& x, T const& y) const {
        return x < y;
    }
};
}
template <typename T, int VT>
__global__ void merge(T const* a, int na, T const* b, int nb, T* c) {
    int diag = VT * (blockIdx.x * blockDim.x + threadIdx.x);
    if (diag >= na + nb) return;
    int i = mp::split(a, na, b, nb, diag, mp::Smaller{}), j = diag - i;
#pragma unroll
    for (int k = 0; k < VT; ++k) {
        if (diag + k < na + nb) {
#if FAULT == 5
            bool left = j >= nb || !(b[j] < a[i]);
#else
            bool left = j >= nb || (i < na && !(b[j] < a[i]));
#endif
            c[diag + k] = left ? a[i++] : b[j++];
        }
    }
}
