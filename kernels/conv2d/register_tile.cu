// Idea: a thread computes kHigh rows of four outputs; a row of pixels, loaded once, serves all that it lies under.
// From the rung before: 4 x kHigh sums instead of 4, so kDown + kHigh - 1 rows are loaded for kHigh rows of outputs;
// blocks that touch no border load without a test.
// Requires: a block of kTile x kRows threads; image and result aligned to 16 bytes; kWidth = 4 where cols is a multiple
// of 4, kWidth = 1 otherwise.
#include "quads.cuh"

constexpr int kTile = 32;
constexpr int kRows = 2;
constexpr int kHigh = 8;

template <int kDown, int kAcross, Border kBorder, int kWidth>
__global__ void __launch_bounds__(kTile * kRows, 1)
conv2d_register_tile(
    const float* __restrict__ image, const Filter<kDown, kAcross> filter, float* __restrict__ result,
    int rows, int cols)
{
    constexpr int kHalo = quads(kAcross / 2), kQuads = 1 + 2 * kHalo;
    const int top = blockIdx.y * kRows * kHigh - kDown / 2;           // the first row that the block reads
    const int left = blockIdx.x * kTile * kOut - kHalo * kOut;        // and the first column
    const int first = (blockIdx.y * kRows + threadIdx.y) * kHigh;
    const int col = (blockIdx.x * kTile + threadIdx.x) * kOut;
    float sum[kHigh][kOut] = {};
    // Row y of the thread's rows of pixels is row y - h of the filter for the outputs of row h.
    const auto add = [&](int y, const float4 (&quad)[kQuads]) {
        const float* window = reinterpret_cast<const float*>(quad) + kHalo * kOut - kAcross / 2;
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
    const bool whole = kWidth == 4 && top >= 0 && top + kRows * kHigh + kDown - 1 <= rows && left >= 0 &&
                       left + (kTile + 2 * kHalo) * kOut <= cols;
    if (whole) {
        const float* from = image + static_cast<size_t>(first - kDown / 2) * cols + (col - kHalo * kOut);
#pragma unroll
        for (int y = 0; y < kHigh + kDown - 1; ++y) {
            float4 quad[kQuads];
#pragma unroll
            for (int q = 0; q < kQuads; ++q) {
                quad[q] = reinterpret_cast<const float4*>(from)[q];
            }
            from += cols;
            add(y, quad);
        }
    } else {
        const Columns<kQuads> columns(col - kHalo * kOut, cols);
#pragma unroll
        for (int y = 0; y < kHigh + kDown - 1; ++y) {
            float4 quad[kQuads];
            load_window<kBorder, kWidth>(quad, image, first + y - kDown / 2, columns, rows, cols);
            add(y, quad);
        }
    }
#pragma unroll
    for (int h = 0; h < kHigh; ++h) {
        if (first + h < rows) {
            store_quad<kWidth>(result, first + h, col, cols, sum[h]);
        }
    }
}
