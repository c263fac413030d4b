// Idea: a block loads its inputs and a halo on all sides into shared memory.
// From the rung before: the neighbours come from the tile; only the load checks the
// edges of the grid.
// Requires: a block of kTile x kTile threads.
#include "../../common/stencil_weights.cuh"

constexpr int kTile = 32;

template <int kRadius>
__global__ void __launch_bounds__(kTile * kTile) stencil2d_tiled(
    const float* __restrict__ source, float* __restrict__ target, int rows, int cols)
{
    constexpr int kWide = kTile + 2 * kRadius;
    __shared__ float tile[kWide][kWide];
    const int first_row = blockIdx.y * kTile;
    const int first_col = blockIdx.x * kTile;
    // The tile exceeds the block in both directions. Four passes fill it: the block's
    // own square, the strip to its right, the strip below, and the corner between them.
#pragma unroll
    for (int top = 0; top < kWide; top += kTile) {
#pragma unroll
        for (int left = 0; left < kWide; left += kTile) {
            const int y = top + threadIdx.y, x = left + threadIdx.x;
            const int r = first_row - kRadius + y, c = first_col - kRadius + x;
            const bool inside = r >= 0 && r < rows && c >= 0 && c < cols;
            if (y < kWide && x < kWide) {
                tile[y][x] = inside ? source[static_cast<size_t>(r) * cols + c] : 0.0f;
            }
        }
    }
    __syncthreads();  // tile and halo are loaded before any thread reads them

    float sum = 0.0f;
#pragma unroll
    for (int down = 0; down <= 2 * kRadius; ++down) {
#pragma unroll
        for (int across = 0; across <= 2 * kRadius; ++across) {
            sum += weight(down - kRadius, across - kRadius) *
                   tile[threadIdx.y + down][threadIdx.x + across];
        }
    }
    const int row = first_row + threadIdx.y, col = first_col + threadIdx.x;
    if (row < rows && col < cols) {
        target[static_cast<size_t>(row) * cols + col] = sum;
    }
}
