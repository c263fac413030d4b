// Idea: read floats but add doubles: memory is slower, which hides the wider additions.
// From the rung before: the first rung.
// Requires: source aligned to 16 bytes; a block of kThreads threads; one block per
// kChunk floats; one launch at a time.
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

// block_sum.cuh of the ladder reduction, for doubles. One template for both would
// compile to other instructions than those measured.
//
// The sum of the warp's values, in lane 0. Every lane of the warp must call it.
__device__ double warp_sum(double value)
{
    for (int offset = kWarp / 2; offset > 0; offset /= 2) {
        value += __shfl_down_sync(kAllLanes, value, offset);
    }
    return value;
}

// The sum of the block's values, in thread 0. Every thread of the block must call it.
__device__ double block_sum(double value)
{
    __shared__ double partial[kWarps];
    const int lane = threadIdx.x % kWarp;
    const int warp = threadIdx.x / kWarp;
    value = warp_sum(value);
    if (lane == 0) {
        partial[warp] = value;
    }
    __syncthreads();  // every warp has stored its result before the first warp reads
    if (warp == 0) {
        value = warp_sum(lane < kWarps ? partial[lane] : 0.0);
    }
    return value;
}

// The sum of this thread's floats of the block's chunk.
__device__ double thread_sum(const float* __restrict__ source, size_t n)
{
    const size_t start = static_cast<size_t>(blockIdx.x) * kChunk;
    double sum = 0.0;
    if (start + kChunk <= n) {
        const float4* quads = reinterpret_cast<const float4*>(source + start);
        float4 value[kUnroll];
#pragma unroll
        for (int u = 0; u < kUnroll; ++u) {
            value[u] = quads[threadIdx.x + u * kThreads];
        }
#pragma unroll
        for (int u = 0; u < kUnroll; ++u) {
            sum += (static_cast<double>(value[u].x) + value[u].y) +
                   (static_cast<double>(value[u].z) + value[u].w);
        }
    } else {
        for (size_t i = start + threadIdx.x; i < n; i += kThreads) {
            sum += source[i];
        }
    }
    return sum;
}

// The number of blocks that have finished. After the last one, atomicInc wraps it to
// zero, ready for the next launch.
__device__ unsigned tickets = 0;

__global__ void __launch_bounds__(kThreads) sum_float64(
    const float* __restrict__ source, double* __restrict__ sums,
    double* __restrict__ total, size_t n)
{
    __shared__ bool last;
    double value = block_sum(thread_sum(source, n));
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = value;
        __threadfence();  // the value is visible before the ticket is taken
        last = atomicInc(&tickets, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();  // thread 0 has written `last` before the block reads it
    if (last) {
        __threadfence();  // the other blocks' values are read after their tickets
        value = 0.0;
        for (unsigned i = threadIdx.x; i < gridDim.x; i += kThreads) {
            // From L2: this SM's L1 is not coherent with other SMs' writes.
            value += __ldcg(sums + i);
        }
        value = block_sum(value);
        if (threadIdx.x == 0) {
            *total = value;
        }
    }
}
