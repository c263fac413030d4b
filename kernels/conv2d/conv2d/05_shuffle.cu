// Idea: the lanes of a warp read a row of the tile once and shuffle its pixels.
// From the rung before: two loads per row for any filter, the second for the pixels
// beyond the last lane; the tile is loaded as in the rung tiled.
// Requires: a block of kTile x kTile threads, so that a warp is a row of it; a filter
// at most one warp wide.
#include "border.cuh"

constexpr int kTile = 32;
constexpr unsigned kAll = 0xffffffffu;

template <int kDown, int kAcross, Border kBorder>
__global__ void __launch_bounds__(kTile * kTile) conv2d_shuffle(
    const float* __restrict__ image, const Filter<kDown, kAcross> parameter,
    float* __restrict__ result, int rows, int cols)
{
    const Filter<kDown, kAcross> filter = weights(parameter);
    constexpr int kHigh = kTile + kDown - 1, kWide = kTile + kAcross - 1;
    __shared__ float tile[kHigh][kWide];
    const int first_row = blockIdx.y * kTile - kDown / 2;
    const int first_col = blockIdx.x * kTile - kAcross / 2;
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

    const int lane = threadIdx.x;
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < kDown; ++i) {
        const float* line = tile[threadIdx.y + i];
        const float own = line[lane];
        const float beyond = lane < kAcross - 1 ? line[kTile + lane] : 0.0f;
#pragma unroll
        for (int j = 0; j < kAcross; ++j) {
            // Lane l needs pixel l + j of the row: `own` of lane l + j or, past the
            // last lane, `beyond` of lane l + j - kTile. So lanes below j pass on
            // `beyond`, and all others `own`.
            const float handed = lane < j ? beyond : own;
            sum += filter.at[i][j] *
                   (j == 0 ? own : __shfl_sync(kAll, handed, (lane + j) % kTile));
        }
    }
    const int row = blockIdx.y * kTile + threadIdx.y,
              col = blockIdx.x * kTile + threadIdx.x;
    if (row < rows && col < cols) {
        result[static_cast<size_t>(row) * cols + col] = sum;
    }
}
