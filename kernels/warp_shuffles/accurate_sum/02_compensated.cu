// Idea: a sum as two floats instead of a double, for GPUs that add doubles slowly.
// From the rung before: seven float operations in place of each double addition; only
// the total is stored as a double.
// Requires: source aligned to 16 bytes; a block of kThreads threads; one block per
// kChunk floats; one launch at a time; every partial sum within the range of a float.
constexpr int kThreads = 1024;
constexpr int kUnroll = 8;
constexpr int kWidth = sizeof(float4) / sizeof(float);
constexpr int kChunk = kThreads * kUnroll * kWidth;
constexpr int kWarp = 32;
constexpr int kWarps = kThreads / kWarp;
constexpr unsigned kAllLanes = 0xffffffffu;
static_assert(
    kThreads % kWarp == 0 && kWarps <= kWarp,
    "whole warps, and no more than one warp can add up");

// A sum as two floats: its rounded value, and the rounding error.
struct alignas(8) Pair {
    float high;
    float low;
};

// Adds a float to a pair; low collects the rounding errors of high (Knuth's two-sum:
// exact, six operations).
__device__ Pair add(Pair sum, float value)
{
    const float high = __fadd_rn(sum.high, value);
    const float taken = __fsub_rn(high, sum.high);
    const float lost =
        __fadd_rn(__fsub_rn(sum.high, __fsub_rn(high, taken)), __fsub_rn(value, taken));
    return {high, sum.low + lost};
}

__device__ Pair add(Pair a, Pair b)
{
    Pair sum = add(a, b.high);
    sum.low += b.low;
    return sum;
}

// The pair as a double. If high is infinite or NaN, low is meaningless.
__device__ double value_of(Pair sum)
{
    return isfinite(sum.high) ? static_cast<double>(sum.high) + sum.low : sum.high;
}

// The sum of the warp's values, in lane 0. Every lane of the warp must call it.
__device__ Pair warp_sum(Pair value)
{
    for (int offset = kWarp / 2; offset > 0; offset /= 2) {
        value = add(value, Pair{__shfl_down_sync(kAllLanes, value.high, offset),
                                __shfl_down_sync(kAllLanes, value.low, offset)});
    }
    return value;
}

// The sum of the block's values, in thread 0. Every thread of the block must call it.
__device__ Pair block_sum(Pair value)
{
    __shared__ Pair partial[kWarps];
    const int lane = threadIdx.x % kWarp;
    const int warp = threadIdx.x / kWarp;
    value = warp_sum(value);
    if (lane == 0) {
        partial[warp] = value;
    }
    __syncthreads();  // every warp has stored its result before the first warp reads
    if (warp == 0) {
        value = warp_sum(lane < kWarps ? partial[lane] : Pair{0.0f, 0.0f});
    }
    return value;
}

// The sum of this thread's floats of the block's chunk.
__device__ Pair thread_sum(const float* __restrict__ source, size_t n)
{
    const size_t start = static_cast<size_t>(blockIdx.x) * kChunk;
    Pair sum = {0.0f, 0.0f};
    if (start + kChunk <= n) {
        const float4* quads = reinterpret_cast<const float4*>(source + start);
        float4 value[kUnroll];
#pragma unroll
        for (int u = 0; u < kUnroll; ++u) {
            value[u] = quads[threadIdx.x + u * kThreads];
        }
#pragma unroll
        for (int u = 0; u < kUnroll; ++u) {
            sum =
                add(add(add(add(sum, value[u].x), value[u].y), value[u].z), value[u].w);
        }
    } else {
        for (size_t i = start + threadIdx.x; i < n; i += kThreads) {
            sum = add(sum, source[i]);
        }
    }
    return sum;
}

// The number of blocks that have finished. After the last one, atomicInc wraps it to
// zero, ready for the next launch.
__device__ unsigned tickets = 0;

__global__ void __launch_bounds__(kThreads) sum_compensated(
    const float* __restrict__ source, Pair* __restrict__ sums,
    double* __restrict__ total, size_t n)
{
    __shared__ bool last;
    Pair value = block_sum(thread_sum(source, n));
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = value;
        __threadfence();  // the value is visible before the ticket is taken
        last = atomicInc(&tickets, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();  // thread 0 has written `last` before the block reads it
    if (last) {
        __threadfence();  // the other blocks' values are read after their tickets
        value = Pair{0.0f, 0.0f};
        for (unsigned i = threadIdx.x; i < gridDim.x; i += kThreads) {
            // From L2: this SM's L1 is not coherent with other SMs' writes.
            const float2 other = __ldcg(reinterpret_cast<const float2*>(sums) + i);
            value = add(value, Pair{other.x, other.y});
        }
        value = block_sum(value);
        if (threadIdx.x == 0) {
            *total = value_of(value);
        }
    }
}
