// Idea: a warp adds up its products of one row by shuffles: one atomic per 32 products.
// From the rung before: the same blocks, threads and loads; one atomic per warp instead
// of one per lane.
// Requires: a block of kThreads threads; a grid of tiles along the inputs, the outputs
// and the batch; output is zero.
#include "../../common/warp.cuh"
#include "../zero.cuh"
#include "classifier.cuh"

constexpr int kThreads = 1024;
constexpr int kTile = 32;
static_assert(kThreads == kTile * kTile && kTile == kWarp,
              "a warp per row of the tile");

__global__ void __launch_bounds__(kThreads)
    classifier_tile_sums(const float* __restrict__ weights,
                         const float* __restrict__ input, float* __restrict__ output,
                         int inputs, int outputs)
{
    __shared__ float part[kTile];
    const int across = threadIdx.x % kTile;
    const int i = blockIdx.x * kTile + across;
    const int row = blockIdx.y * kTile + threadIdx.x / kTile;
    const size_t sample = blockIdx.z;
    if (threadIdx.x < kTile) {
        part[across] = i < inputs ? input[sample * inputs + i] : 0.0f;
    }
    __syncthreads();  // the tile's inputs are stored before any warp reads them
    if (row < outputs) {  // the same for all lanes of a warp
        const float product =
            i < inputs ? weights[static_cast<size_t>(row) * inputs + i] * part[across]
                       : 0.0f;
        const float sum = warp_sum(product);
        if (across == 0) atomicAdd(output + sample * outputs + row, sum);
    }
}
