// Idea: a thread computes four neighbouring outputs, with 16-byte accesses.
// From the rung before: global memory again, a row at a time: its pixels in registers
// serve four outputs.
// Requires: a block of kTile x kRows threads; image and result aligned to 16 bytes;
// kWidth = 4 where cols is a multiple of 4, kWidth = 1 otherwise.
#include "quads.cuh"

constexpr int kTile = 32;
constexpr int kRows = 8;

template <int kDown, int kAcross, Border kBorder, int kWidth>
__global__ void __launch_bounds__(kTile * kRows) conv2d_vectorised(
    const float* __restrict__ image, const Filter<kDown, kAcross> parameter,
    float* __restrict__ result, int rows, int cols)
{
    const Filter<kDown, kAcross> filter = weights(parameter);
    constexpr int kHalo = quads(kAcross / 2), kQuads = 1 + 2 * kHalo;
    const int row = blockIdx.y * kRows + threadIdx.y;
    const int col = (blockIdx.x * kTile + threadIdx.x) * kOut;
    if (row >= rows || col >= cols) {
        return;
    }
    const Columns<kQuads, kHalo> columns(col, cols);
    float sum[kOut] = {};
#pragma unroll
    for (int i = 0; i < kDown; ++i) {
        float4 quad[kQuads];
        load_window<kBorder, kWidth>(
            quad, image, row + i - kDown / 2, columns, rows, cols);
        const float* window =
            reinterpret_cast<const float*>(quad) + kHalo * kOut - kAcross / 2;
#pragma unroll
        for (int j = 0; j < kAcross; ++j) {
#pragma unroll
            for (int o = 0; o < kOut; ++o) {
                sum[o] += filter.at[i][j] * window[o + j];
            }
        }
    }
    store_quad<kWidth>(result + static_cast<size_t>(row) * cols + col, col, cols, sum);
}
