// Idea: eight columns per thread, and two rows in flight while a third is computed.
// From the rung before: a weight serves eight outputs at a time; the loop is unrolled
// over the prefetched rows.
// Requires: a block of kThreads threads; image and result aligned to 16 bytes; kWidth =
// 4 where cols is a multiple of 8, kWidth = 1 otherwise; height, the rows of a strip,
// at least 1.
#include "quads.cuh"

constexpr int kThreads = 64;
constexpr int kMine = 2;   // float4s of the thread's own columns
constexpr int kAhead = 2;  // rows in flight

template <int kDown, int kAcross, Border kBorder, int kWidth>
__global__ void __launch_bounds__(kThreads, 1) conv2d_prefetched(
    const float* __restrict__ image, const Filter<kDown, kAcross> parameter,
    float* __restrict__ result, int rows, int cols, int height)
{
    constexpr int kAbove = kDown / 2, kHalo = quads(kAcross / 2),
                  kQuads = kMine + 2 * kHalo;
    const Filter<kDown, kAcross> filter = weights(parameter);
    const int col = (blockIdx.x * kThreads + threadIdx.x) * kOut * kMine;
    const int first = blockIdx.y * height;
    // One past the last row of these outputs.
    const int last = min(first + height, rows);
    if (col >= cols) {
        return;
    }
    const Columns<kQuads, kHalo> columns(col, cols);
    const float* from =
        image + static_cast<ptrdiff_t>(first - kAbove) * cols + columns.first;
    float* to = result + static_cast<ptrdiff_t>(first - 2 * kAbove) * cols + col;
    float sum[kDown][kOut * kMine] = {};
    float4 next[kAhead][kQuads];
    const auto load = [&](float4 (&window)[kQuads], int row) {
        if constexpr (kBorder == kZero && kWidth == 4) {
            load_quads(window, from, row >= 0 && row < rows, columns);
            from += cols;
        } else {
            load_window<kBorder, kWidth>(window, image, row, columns, rows, cols);
        }
    };
#pragma unroll
    for (int a = 0; a < kAhead; ++a) {
        load(next[a], first - kAbove + a);
    }
#pragma unroll 1
    for (int base = first - kAbove; base < last + kAbove; base += kAhead) {
#pragma unroll
        for (int a = 0; a < kAhead; ++a) {
            const int row = base + a;
            float4 quad[kQuads];
#pragma unroll
            for (int q = 0; q < kQuads; ++q) {
                quad[q] = next[a][q];
            }
            load(next[a], row + kAhead);
            const float* window =
                reinterpret_cast<const float*>(quad) + kHalo * kOut - kAcross / 2;
            // sum[d] belongs to output row - kAbove + d, for which this row is
            // multiplied by row kDown - 1 - d of the filter. The first tap reads
            // sum[d + 1]: the sums move up without a move instruction.
#pragma unroll
            for (int j = 0; j < kAcross; ++j) {
#pragma unroll
                for (int d = 0; d < kDown; ++d) {
#pragma unroll
                    for (int o = 0; o < kOut * kMine; ++o) {
                        const float below = d + 1 < kDown ? sum[d + 1][o] : 0.0f;
                        const float so_far = j > 0 ? sum[d][o] : below;
                        sum[d][o] =
                            so_far + filter.at[kDown - 1 - d][j] * window[o + j];
                    }
                }
            }
            if (row - kAbove >= first && row - kAbove < last) {
#pragma unroll
                for (int m = 0; m < kMine; ++m) {
                    store_quad<kWidth>(
                        to + m * kOut, col + m * kOut, cols, sum[0] + m * kOut);
                }
            }
            to += cols;
        }
    }
}
