// Idea: make a thread's outputs adjacent: a float serves up to 2 kRadius + 1 of them.
// From the rung before: adjacent outputs of a column instead of outputs kRows rows
// apart; kOut sums and a column in registers.
// Requires: a block of kTile x kRows threads.
#include "../../common/stencil_weights.cuh"

constexpr int kTile = 32;
constexpr int kRows = 8;

template <int kRadius, int kOut>
__global__ void __launch_bounds__(kTile * kRows) coarse_stencil_register_column(
    const float* __restrict__ source, float* __restrict__ target, int rows, int cols)
{
    constexpr int kHigh = kRows * kOut + 2 * kRadius;
    constexpr int kWide = kTile + 2 * kRadius;
    __shared__ float tile[kHigh][kWide];
    const int first_row = blockIdx.y * kRows * kOut;
    const int first_col = blockIdx.x * kTile;
#pragma unroll 4
    for (int i = threadIdx.y * kTile + threadIdx.x; i < kHigh * kWide;
         i += kTile * kRows) {
        const int y = i / kWide, x = i % kWide;
        const int r = first_row - kRadius + y, c = first_col - kRadius + x;
        const bool inside = r >= 0 && r < rows && c >= 0 && c < cols;
        tile[y][x] = inside ? source[static_cast<size_t>(r) * cols + c] : 0.0f;
    }
    __syncthreads();  // tile and halo are loaded before any thread reads them

    const int line = threadIdx.y * kOut;
    float sum[kOut] = {};
#pragma unroll
    for (int across = 0; across <= 2 * kRadius; ++across) {
        float column[kOut + 2 * kRadius];
#pragma unroll
        for (int y = 0; y < kOut + 2 * kRadius; ++y) {
            column[y] = tile[line + y][threadIdx.x + across];
        }
#pragma unroll
        for (int down = 0; down <= 2 * kRadius; ++down) {
#pragma unroll
            for (int o = 0; o < kOut; ++o) {
                sum[o] += weight(down - kRadius, across - kRadius) * column[o + down];
            }
        }
    }
    const int col = first_col + threadIdx.x;
#pragma unroll
    for (int o = 0; o < kOut; ++o) {
        const int row = first_row + line + o;
        if (row < rows && col < cols) {
            target[static_cast<size_t>(row) * cols + col] = sum[o];
        }
    }
}
