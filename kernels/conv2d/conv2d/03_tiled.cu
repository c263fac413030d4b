// Idea: a block loads its pixels and a halo on four sides into shared memory, once.
// From the rung before: the taps read the tile; only the load handles the border.
// Requires: a block of kTile x kTile threads.
#include "border.cuh"

constexpr int kTile = 32;

template <int kDown, int kAcross, Border kBorder>
__global__ void __launch_bounds__(kTile * kTile) conv2d_tiled(
    const float* __restrict__ image, const Filter<kDown, kAcross> parameter,
    float* __restrict__ result, int rows, int cols)
{
    const Filter<kDown, kAcross> filter = weights(parameter);
    constexpr int kHigh = kTile + kDown - 1, kWide = kTile + kAcross - 1;
    __shared__ float tile[kHigh][kWide];
    const int first_row = blockIdx.y * kTile - kDown / 2;
    const int first_col = blockIdx.x * kTile - kAcross / 2;
    // Four passes fill the tile: the block's own square, the strip to its right, the
    // strip below, and the corner.
    for (int top = 0; top < kHigh; top += kTile) {
        for (int left = 0; left < kWide; left += kTile) {
            const int y = top + threadIdx.y, x = left + threadIdx.x;
            if (y < kHigh && x < kWide) {
                tile[y][x] =
                    pixel<kBorder>(image, first_row + y, first_col + x, rows, cols);
            }
        }
    }
    __syncthreads();  // tile and halo are loaded before any thread reads them

    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < kDown; ++i) {
#pragma unroll
        for (int j = 0; j < kAcross; ++j) {
            sum += filter.at[i][j] * tile[threadIdx.y + i][threadIdx.x + j];
        }
    }
    const int row = blockIdx.y * kTile + threadIdx.y,
              col = blockIdx.x * kTile + threadIdx.x;
    if (row < rows && col < cols) {
        result[static_cast<size_t>(row) * cols + col] = sum;
    }
}
