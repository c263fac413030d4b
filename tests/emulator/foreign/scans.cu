#ifndef FAULT
#define FAULT 0
#endif
// Hillis and Steele, two buffers carved out of dynamic shared memory; inclusive, one
// block.
extern "C" __global__ void hillis_steele(float *g_odata, float *g_idata, int n)
{
    extern __shared__ float temp[];
    int thid = threadIdx.x;
    int pout = 0, pin = 1;
    temp[pout * n + thid] = g_idata[thid];
    __syncthreads();
    for (int offset = 1; offset < n; offset *= 2)
    {
        pout = 1 - pout;
        pin = 1 - pout;
        if (thid >= offset)
            temp[pout * n + thid] =
                temp[pin * n + thid] + temp[pin * n + thid - offset];
        else
            temp[pout * n + thid] = temp[pin * n + thid];
#if FAULT != 1
        __syncthreads();
#endif
    }
    g_odata[thid] = temp[pout * n + thid];
}

// In place: read, barrier, write, barrier.
extern "C" __global__ void scan_in_place(int *data, int n) {
    __shared__ int s[1024];
    int t = threadIdx.x;
    s[t] = t < n ? data[t] : 0;
    for (int d = 1; d < blockDim.x; d <<= 1) {
        __syncthreads();
        int v = 0;
        if (t >= d) v = s[t - d];
#if FAULT != 2
        __syncthreads();
#endif
        s[t] += v;
    }
    if (t < n) data[t] = s[t];
}

// Blelloch's work-efficient exclusive scan of 2 * blockDim elements with padded
// addresses, block sums for a second pass.
#define LOG_NUM_BANKS 5
#define CONFLICT_FREE_OFFSET(n) ((n) >> LOG_NUM_BANKS)

extern "C" __global__ void blelloch(const int *in, int *out, int *sums, int len)
{
    extern __shared__ int stemp[];
    const int n = 2 * blockDim.x;
    int thid = threadIdx.x, base = blockIdx.x * n;
    int ai = thid, bi = thid + (n / 2);
    int bankOffsetA = CONFLICT_FREE_OFFSET(ai), bankOffsetB = CONFLICT_FREE_OFFSET(bi);
    stemp[ai + bankOffsetA] = base + ai < len ? in[base + ai] : 0;
#if FAULT == 3
    if (base + bi < len) stemp[bi + bankOffsetB] = in[base + bi];
#else
    stemp[bi + bankOffsetB] = base + bi < len ? in[base + bi] : 0;
#endif
    int offset = 1;
    for (int d = n >> 1; d > 0; d >>= 1) {
        __syncthreads();
        if (thid < d) {
            int ai = offset * (2 * thid + 1) - 1;
            int bi = offset * (2 * thid + 2) - 1;
            ai += CONFLICT_FREE_OFFSET(ai);
            bi += CONFLICT_FREE_OFFSET(bi);
            stemp[bi] += stemp[ai];
        }
        offset *= 2;
    }
    if (thid == 0) {
        sums[blockIdx.x] = stemp[n - 1 + CONFLICT_FREE_OFFSET(n - 1)];
        stemp[n - 1 + CONFLICT_FREE_OFFSET(n - 1)] = 0;
    }
    for (int d = 1; d < n; d *= 2) {
        offset >>= 1;
#if FAULT != 4
        __syncthreads();
#endif
        if (thid < d) {
            int ai = offset * (2 * thid + 1) - 1;
            int bi = offset * (2 * thid + 2) - 1;
            ai += CONFLICT_FREE_OFFSET(ai);
            bi += CONFLICT_FREE_OFFSET(bi);
            int t = stemp[ai];
            stemp[ai] = stemp[bi];
            stemp[bi] += t;
        }
    }
    __syncthreads();
    if (base + ai < len) out[base + ai] = stemp[ai + bankOffsetA];
    if (base + bi < len) out[base + bi] = stemp[bi + bankOffsetB];
}

extern "C" __global__ void add_carry(int *out, const int *sums, int len) {
    __shared__ int carry;
    if (threadIdx.x == 0) {
        carry = 0;
        for (int b = 0; b < blockIdx.x; ++b) carry += sums[b];
    }
#if FAULT != 5
    __syncthreads();
#endif
    for (int k = 0; k < 2; ++k) {
        int i = blockIdx.x * 2 * blockDim.x + k * blockDim.x + threadIdx.x;
        if (i < len) out[i] += carry;
    }
}

// One pass: a block takes its number from a counter and looks back for the sum of what
// is before it.
enum : unsigned { NOTHING = 0, AGGREGATE = 1, PREFIX = 2 };

__device__ inline unsigned long long pack(unsigned flag, int value) {
    return (static_cast<unsigned long long>(flag) << 32) | static_cast<unsigned>(value);
}

extern "C" __global__ void __launch_bounds__(128)
look_back(const int *__restrict__ in, int *__restrict__ out,
          unsigned long long *status, unsigned *next, int n) {
    __shared__ unsigned tile;
    __shared__ int warp_sums[4];
    __shared__ int before;
    if (threadIdx.x == 0) tile = atomicAdd(next, 1u);
    __syncthreads();
    const int i = tile * 128 + threadIdx.x, lane = threadIdx.x % 32,
              warp = threadIdx.x / 32;
    int v = i < n ? in[i] : 0;
    for (int d = 1; d < 32; d *= 2) {
        int up = __shfl_up_sync(~0u, v, d);
        if (lane >= d) v += up;
    }
    if (lane == 31) warp_sums[warp] = v;
    __syncthreads();
    for (int w = 0; w < warp; ++w) v += warp_sums[w];
    if (threadIdx.x == 127) {
        volatile unsigned long long* st = status;
        if (tile == 0) {
            st[0] = pack(PREFIX, v);
            before = 0;
        } else {
            st[tile] = pack(AGGREGATE, v);
            __threadfence();
            int sum = 0;
            for (int look = int(tile) - 1; look >= 0;) {
                unsigned long long word = st[look];
                unsigned flag = unsigned(word >> 32);
                if (flag == NOTHING) continue;
                sum += int(unsigned(word));
                if (flag == PREFIX) break;
                --look;
            }
            st[tile] = pack(PREFIX, sum + v);
            before = sum;
        }
    }
#if FAULT != 6
    __syncthreads();
#endif
    if (i < n) out[i] = v + before;
}
