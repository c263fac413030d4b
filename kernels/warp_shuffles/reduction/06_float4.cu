// Idea: a thread has kUnroll 16-byte loads in flight before it adds anything.
// From the rung before: kUnroll float4 per thread instead of two floats, and kThreads
// threads; two launches are enough.
// Requires: source aligned to 16 bytes; a block of kThreads threads; one block per
// kChunk floats, then one block for the sums.
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

// The sum of the warp's values, in lane 0. Every lane of the warp must call it.
__device__ float warp_sum(float value)
{
    for (int offset = kWarp / 2; offset > 0; offset /= 2) {
        value += __shfl_down_sync(kAllLanes, value, offset);
    }
    return value;
}

// The sum of the block's values, in thread 0. Every thread of the block must call it.
__device__ float block_sum(float value)
{
    __shared__ float partial[kWarps];
    const int lane = threadIdx.x % kWarp;
    const int warp = threadIdx.x / kWarp;
    value = warp_sum(value);
    if (lane == 0) {
        partial[warp] = value;
    }
    __syncthreads();  // every warp has written before the first warp reads
    if (warp == 0) {
        value = warp_sum(lane < kWarps ? partial[lane] : 0.0f);
    }
    return value;
}

// The sum of this thread's floats of the block's chunk.
__device__ float thread_sum(const float* __restrict__ source, size_t n)
{
    const size_t start = static_cast<size_t>(blockIdx.x) * kChunk;
    float sum = 0.0f;
    if (start + kChunk <= n) {
        const float4* quads = reinterpret_cast<const float4*>(source + start);
        float4 value[kUnroll];
#pragma unroll
        for (int u = 0; u < kUnroll; ++u) {
            value[u] = quads[threadIdx.x + u * kThreads];
        }
#pragma unroll
        for (int u = 0; u < kUnroll; ++u) {
            sum += (value[u].x + value[u].y) + (value[u].z + value[u].w);
        }
    } else {
        for (size_t i = start + threadIdx.x; i < n; i += kThreads) {
            sum += source[i];
        }
    }
    return sum;
}

__global__ void __launch_bounds__(kThreads)
    sum_float4(const float* __restrict__ source, float* __restrict__ sums, size_t n)
{
    const float sum = block_sum(thread_sum(source, n));
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = sum;
    }
}
