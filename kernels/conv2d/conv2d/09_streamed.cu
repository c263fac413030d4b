// Idea: a thread walks down its columns and adds each row to several outputs.
// From the rung before: kDown rows of sums, which move up with each row; meanwhile the
// next row is in flight.
// Requires: a block of kThreads threads; image and result aligned to 16 bytes; kWidth =
// 4 where cols is a multiple of 4, kWidth = 1 otherwise; height, the rows of a strip,
// at least 1.
#include "quads.cuh"

constexpr int kThreads = 128;

template <int kDown, int kAcross, Border kBorder, int kWidth>
__global__ void __launch_bounds__(kThreads, 1) conv2d_streamed(
    const float* __restrict__ image, const Filter<kDown, kAcross> parameter,
    float* __restrict__ result, int rows, int cols, int height)
{
    const Filter<kDown, kAcross> filter = weights(parameter);
    constexpr int kAbove = kDown / 2, kHalo = quads(kAcross / 2),
                  kQuads = 1 + 2 * kHalo;
    const int col = (blockIdx.x * kThreads + threadIdx.x) * kOut;
    const int first = blockIdx.y * height;
    // The last row that these outputs need.
    const int last = min(first + height, rows) + kAbove - 1;
    if (col >= cols) {
        return;
    }
    const Columns<kQuads, kHalo> columns(col, cols);
    float sum[kDown][kOut] = {};
    float4 next[kQuads];
    load_window<kBorder, kWidth>(next, image, first - kAbove, columns, rows, cols);
#pragma unroll 1
    for (int row = first - kAbove; row <= last; ++row) {
        float4 quad[kQuads];
#pragma unroll
        for (int q = 0; q < kQuads; ++q) {
            quad[q] = next[q];
        }
        load_window<kBorder, kWidth>(
            next, image, min(row + 1, last), columns, rows, cols);
        const float* window =
            reinterpret_cast<const float*>(quad) + kHalo * kOut - kAcross / 2;
        // sum[d] belongs to output row - kAbove + d, for which this row is multiplied
        // by row kDown - 1 - d of the filter. The first tap reads sum[d + 1]: the sums
        // move up without a move instruction.
#pragma unroll
        for (int j = 0; j < kAcross; ++j) {
#pragma unroll
            for (int d = 0; d < kDown; ++d) {
#pragma unroll
                for (int o = 0; o < kOut; ++o) {
                    const float below = d + 1 < kDown ? sum[d + 1][o] : 0.0f;
                    const float so_far = j > 0 ? sum[d][o] : below;
                    sum[d][o] = so_far + filter.at[kDown - 1 - d][j] * window[o + j];
                }
            }
        }
        if (row - kAbove >= first) {
            store_quad<kWidth>(
                result + static_cast<size_t>(row - kAbove) * cols + col, col, cols,
                sum[0]);
        }
    }
}
