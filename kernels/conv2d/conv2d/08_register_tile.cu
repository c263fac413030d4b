// Idea: a thread computes kHigh rows of four outputs; a row serves several.
// From the rung before: 4 x kHigh sums instead of 4, so kDown + kHigh - 1 rows are
// loaded for kHigh rows of outputs.
// Requires: a block of kTile x kRows threads; image and result aligned to 16 bytes;
// kWidth = 4 where cols is a multiple of 4, kWidth = 1 otherwise.
#include "quads.cuh"

constexpr int kTile = 32;
constexpr int kRows = 2;
constexpr int kHigh = 8;

// At least one block per SM: without the 1, the compiler saves registers and keeps
// fewer loads in flight.
template <int kDown, int kAcross, Border kBorder, int kWidth>
__global__ void __launch_bounds__(kTile * kRows, 1) conv2d_register_tile(
    const float* __restrict__ image, const Filter<kDown, kAcross> parameter,
    float* __restrict__ result, int rows, int cols)
{
    constexpr int kHalo = quads(kAcross / 2), kQuads = 1 + 2 * kHalo,
                  kPixelRows = kHigh + kDown - 1;
    const Filter<kDown, kAcross> filter = weights(parameter);
    const int first = (blockIdx.y * kRows + threadIdx.y) * kHigh;
    const int col = (blockIdx.x * kTile + threadIdx.x) * kOut;
    if (first >= rows || col >= cols) {
        return;
    }
    const Columns<kQuads, kHalo> columns(col, cols);
    float sum[kHigh][kOut] = {};
    // For outputs in row h of the thread, row y of its pixels is multiplied by row y -
    // h of the filter.
    const auto add = [&](int y, const float4 (&quad)[kQuads]) {
        const float* window =
            reinterpret_cast<const float*>(quad) + kHalo * kOut - kAcross / 2;
#pragma unroll
        for (int h = 0; h < kHigh; ++h) {
            if (y - h >= 0 && y - h < kDown) {
#pragma unroll
                for (int j = 0; j < kAcross; ++j) {
#pragma unroll
                    for (int o = 0; o < kOut; ++o) {
                        sum[h][o] += filter.at[y - h][j] * window[o + j];
                    }
                }
            }
        }
    };
    // With a zero border, pixels outside are not loaded. With another border, blocks
    // that touch it look each pixel up; all other blocks load without a test.
    const int top = blockIdx.y * kRows * kHigh - kDown / 2,
              left = (blockIdx.x * kTile - kHalo) * kOut;
    const bool whole = top >= 0 && top + (kRows - 1) * kHigh + kPixelRows <= rows &&
                       left >= 0 && left + (kTile + 2 * kHalo) * kOut <= cols;
    if (kWidth == 4 && (kBorder == kZero || whole)) {
        const float* from =
            image + static_cast<ptrdiff_t>(first - kDown / 2) * cols + columns.first;
#pragma unroll
        for (int y = 0; y < kPixelRows; ++y) {
            const int row = first + y - kDown / 2;
            float4 quad[kQuads];
            if constexpr (kBorder == kZero) {
                load_quads(quad, from, row >= 0 && row < rows, columns);
            } else {
#pragma unroll
                for (int q = 0; q < kQuads; ++q) {
                    quad[q] = reinterpret_cast<const float4*>(from)[q];
                }
            }
            from += cols;
            add(y, quad);
        }
    } else {
#pragma unroll
        for (int y = 0; y < kPixelRows; ++y) {
            float4 quad[kQuads];
            load_window<kBorder, kWidth>(
                quad, image, first + y - kDown / 2, columns, rows, cols);
            add(y, quad);
        }
    }
    float* to = result + static_cast<size_t>(first) * cols + col;
#pragma unroll
    for (int h = 0; h < kHigh; ++h) {
        if (first + h < rows) {
            store_quad<kWidth>(to, col, cols, sum[h]);
        }
        to += cols;
    }
}
