// Idea: a thread computes kOut outputs, kRows rows apart, from a larger tile.
// From the rung before: the first rung; with kOut = 1 it is the kernel with one output
// per thread.
// Requires: a block of kTile x kRows threads.
#include "../../common/stencil_weights.cuh"

constexpr int kTile = 32;
constexpr int kRows = 8;

template <int kRadius, int kOut>
__global__ void __launch_bounds__(kTile * kRows) coarse_stencil_strided(
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

    const int col = first_col + threadIdx.x;
#pragma unroll
    for (int o = 0; o < kOut; ++o) {
        const int line = o * kRows + threadIdx.y;
        float sum = 0.0f;
#pragma unroll
        for (int across = 0; across <= 2 * kRadius; ++across) {
#pragma unroll
            for (int down = 0; down <= 2 * kRadius; ++down) {
                sum += weight(down - kRadius, across - kRadius) *
                       tile[line + down][threadIdx.x + across];
            }
        }
        const int row = first_row + line;
        if (row < rows && col < cols) {
            target[static_cast<size_t>(row) * cols + col] = sum;
        }
    }
}
