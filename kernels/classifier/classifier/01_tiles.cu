// Idea: a block per tile of 32 x 32 weights, a thread per weight; every product is added to its output by an atomic.
// From the rung before: nothing, this is the first rung; the report's class1 with its indices mended.
// Requires: a block of kThreads threads; a grid of tiles along the inputs, the outputs and the batch; output is zero.
#include "../zero.cuh"

constexpr int kThreads = 1024;
constexpr int kTile = 32;
static_assert(kThreads == kTile * kTile, "a thread per weight of the tile");

__global__ void __launch_bounds__(kThreads) classifier_tiles(
    const float* __restrict__ weights, const float* __restrict__ input, float* __restrict__ output, int inputs,
    int outputs)
{
    __shared__ float part[kTile];
    const int across = threadIdx.x % kTile;
    const int i = blockIdx.x * kTile + across;
    const int row = blockIdx.y * kTile + threadIdx.x / kTile;
    const size_t sample = blockIdx.z;
    if (threadIdx.x < kTile) {
        part[across] = i < inputs ? input[sample * inputs + i] : 0.0f;
    }
    __syncthreads();  // the first warp has loaded this tile's inputs before all warps read them
    if (row < outputs && i < inputs) {
        atomicAdd(output + sample * outputs + row, weights[static_cast<size_t>(row) * inputs + i] * part[across]);
    }
}
