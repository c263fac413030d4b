// Sums in the ways of fifteen years of course notes. -DFAULT=n plants a fault.
#ifndef FAULT
#define FAULT 0
#endif

// Old school: volatile, the last warp unrolled, no barrier in it (right on hardware
// before Volta only).
template <unsigned int blockSize>
__device__ void warpReduceOld(volatile float *sdata, unsigned int tid)
{
    if (blockSize >= 64) sdata[tid] += sdata[tid + 32];
    if (blockSize >= 32) sdata[tid] += sdata[tid + 16];
    if (blockSize >= 16) sdata[tid] += sdata[tid + 8];
    if (blockSize >= 8) sdata[tid] += sdata[tid + 4];
    if (blockSize >= 4) sdata[tid] += sdata[tid + 2];
    if (blockSize >= 2) sdata[tid] += sdata[tid + 1];
}

template <unsigned int blockSize>
__global__ void reduceOld(float *g_idata, float *g_odata, unsigned int n)
{
    extern __shared__ float sdata[];
    unsigned int tid = threadIdx.x;
    unsigned int i = blockIdx.x * (blockSize * 2) + tid;
    unsigned int gridSize = blockSize * 2 * gridDim.x;
    sdata[tid] = 0;
    while (i < n) {
        sdata[tid] += g_idata[i];
        if (i + blockSize < n) sdata[tid] += g_idata[i + blockSize];
        i += gridSize;
    }
    __syncthreads();
    if (blockSize >= 512) {
        if (tid < 256) {
            sdata[tid] += sdata[tid + 256];
        }
        __syncthreads();
    }
    if (blockSize >= 256) {
        if (tid < 128) {
            sdata[tid] += sdata[tid + 128];
        }
        __syncthreads();
    }
    if (blockSize >= 128) {
        if (tid < 64) {
            sdata[tid] += sdata[tid + 64];
        }
        __syncthreads();
    }
    if (tid < 32) warpReduceOld<blockSize>(sdata, tid);
    if (tid == 0) g_odata[blockIdx.x] = sdata[0];
}

// The same last warp as Volta wants it: every step read, met, written, met.
__device__ void warpReduceSync(volatile float* s, int t) {
    float v = s[t];
    v += s[t + 32]; __syncwarp(); s[t] = v; __syncwarp();
    v += s[t + 16]; __syncwarp(); s[t] = v; __syncwarp();
    v += s[t + 8];  __syncwarp(); s[t] = v; __syncwarp();
    v += s[t + 4];  __syncwarp(); s[t] = v; __syncwarp();
    v += s[t + 2];
#if FAULT != 1
    __syncwarp();
#endif
    s[t] = v; __syncwarp();
    v += s[t + 1];  __syncwarp(); s[t] = v;
}

extern "C" __global__ void reduce_volta(const float *__restrict__ x,
                                        float *__restrict__ out, int n) {
    __shared__ float s[128];
    int t = threadIdx.x, i = blockIdx.x * 256 + t;
    float v = 0.f;
    if (i < n) v = x[i];
    if (i + 128 < n) v += x[i + 128];
    s[t] = v;
    __syncthreads();
    if (t < 64) s[t] += s[t + 64];
#if FAULT != 2
    __syncthreads();
#endif
    if (t < 32) warpReduceSync(s, t);
    if (t == 0) atomicAdd(out, s[0]);
}

// The last warp in a loop, volatile and without barriers.
extern "C" __global__ void reduce_loop(const float *x, float *out, int half) {
    __shared__ volatile float s[64];
    const int t = threadIdx.x;
    s[t] = x[t];
    s[t + 32] = 0;
    __syncwarp();
#pragma unroll 1
    for (int d = half; d; d /= 2) {
        float other = s[t + d];
        s[t] += other;
    }
    if (t == 0) *out = s[0];
}

// Modern: shuffles, one value per warp in shared memory.
constexpr unsigned FULL_MASK = 0xffffffffu;

template <typename T, typename Op>
__device__ __forceinline__ T warp_reduce(T v, Op op) {
#pragma unroll
    for (int offset = warpSize / 2; offset > 0; offset >>= 1)
        v = op(v, __shfl_down_sync(FULL_MASK, v, offset));
    return v;
}

template <typename T, typename Op>
__device__ T block_reduce(T v, T identity, Op op) {
    __shared__ T partial[32];
    const int lane = threadIdx.x & 31, wid = threadIdx.x >> 5;
    v = warp_reduce(v, op);
    if (lane == 0) partial[wid] = v;
#if FAULT != 3
    __syncthreads();
#endif
    const int warps = (blockDim.x + 31) / 32;
#if FAULT == 4
    v = partial[lane];
#else
    v = lane < warps ? partial[lane] : identity;
#endif
    if (wid == 0) v = warp_reduce(v, op);
    return v;
}

extern "C" __global__ void sum_and_max(const float *x, int n, float *total,
                                       int *biggest) {
    float s = 0.f;
    int m = -2147483647;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
         i += blockDim.x * gridDim.x) {
        s += x[i];
        m = max(m, __float2int_rn(x[i] * 1000.f));
    }
    s = block_reduce(s, 0.f, [](float a, float b) { return a + b; });
    m = block_reduce(m, -2147483647, [](int a, int b) { return a > b ? a : b; });
    if (threadIdx.x == 0) { atomicAdd(total, s); atomicMax(biggest, m); }
}

// One launch: the last block to finish adds the partial sums.
__device__ unsigned int retired = 0;

extern "C" __global__ void sum_last_block(const float *in, volatile float *partial,
                                          float *out, int n) {
    __shared__ float cache[256];
    __shared__ bool amLast;
    int cacheIndex = threadIdx.x;
    float temp = 0;
    for (int tid = threadIdx.x + blockIdx.x * blockDim.x; tid < n;
         tid += blockDim.x * gridDim.x)
        temp += in[tid];
    cache[cacheIndex] = temp;
    __syncthreads();
    int i = blockDim.x / 2;
    while (i != 0) {
        if (cacheIndex < i) cache[cacheIndex] += cache[cacheIndex + i];
#if FAULT != 5
        __syncthreads();
#endif
        i /= 2;
    }
    if (cacheIndex == 0) {
        partial[blockIdx.x] = cache[0];
        __threadfence();
        unsigned int ticket = atomicInc(&retired, gridDim.x - 1);
        amLast = (ticket == gridDim.x - 1);
    }
#if FAULT != 6
    __syncthreads();
#endif
    if (amLast && cacheIndex == 0) {
        float sum = 0;
        for (int b = 0; b < gridDim.x; b++) sum += partial[b];
        *out = sum;
    }
}

// Compensated, double precision.
extern "C" __global__ void kahan(const double *a, double *out, long long n) {
    __shared__ double hi[64], lo[64];
    double sum = 0.0, c = 0.0;
    for (long long i = threadIdx.x; i < n; i += 64) {
        double y = __dsub_rn(a[i], c);
        double t = __dadd_rn(sum, y);
        c = __dsub_rn(__dsub_rn(t, sum), y);
        sum = t;
    }
    hi[threadIdx.x] = sum; lo[threadIdx.x] = c;
    __syncthreads();
    if (threadIdx.x) return;
    sum = 0; c = 0;
    for (int k = 0; k < 64; ++k) {
        double y = hi[k] - (c + lo[k]), t = sum + y;
        c = (t - sum) - y;
        sum = t;
    }
    *out = sum;
}
