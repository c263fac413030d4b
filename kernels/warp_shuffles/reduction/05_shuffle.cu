// Idea: lanes add through registers; shared memory holds one float per warp.
// From the rung before: five shuffles replace five steps of the tree; of eight
// barriers, one remains.
// Requires: a block of kThreads threads; one block per kChunk floats; repeated launches
// on its own sums until one is left.
constexpr int kThreads = 256;
constexpr int kChunk = 2 * kThreads;
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
    __syncthreads();  // every warp has stored its result before the first warp reads
    if (warp == 0) {
        value = warp_sum(lane < kWarps ? partial[lane] : 0.0f);
    }
    return value;
}

__global__ void sum_shuffle(
    const float* __restrict__ source, float* __restrict__ sums, size_t n)
{
    const size_t i = static_cast<size_t>(blockIdx.x) * kChunk + threadIdx.x;
    const float first = i < n ? source[i] : 0.0f;
    const float second = i + kThreads < n ? source[i + kThreads] : 0.0f;
    const float sum = block_sum(first + second);
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = sum;
    }
}
