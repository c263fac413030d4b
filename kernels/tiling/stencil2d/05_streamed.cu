// Idea: a thread walks down its columns and adds each row to several outputs.
// From the rung before: a strip of kHigh rows per thread, so few rows are loaded twice;
// the sums shift by one with each row.
// Requires: a block of kThreads threads; both arrays aligned to 16 bytes; kWidth = 4
// where cols is a multiple of 4, kWidth = 1 otherwise.
#include "../../common/stencil_weights.cuh"
#include "quads.cuh"

constexpr int kThreads = 128;
constexpr int kHigh = 128;

template <int kRadius, int kWidth>
__global__ void __launch_bounds__(kThreads) stencil2d_streamed(
    const float* __restrict__ source, float* __restrict__ target, int rows, int cols)
{
    constexpr int kHalo = (kRadius + kOut - 1) / kOut;
    constexpr int kQuads = 1 + 2 * kHalo;
    const int col = (blockIdx.x * kThreads + threadIdx.x) * kOut;
    const int first = blockIdx.y * kHigh;
    const int last = min(first + kHigh, rows);
    float sum[2 * kRadius + 1][kOut] = {};
    float4 next[kQuads];
    // Loads a row one step ahead, so that its loads are in flight while this step
    // computes.
    const auto load = [&](int row) {
        const bool inside = row >= 0 && row < rows;
        const float* from = source + static_cast<size_t>(inside ? row : 0) * cols;
#pragma unroll
        for (int q = 0; q < kQuads; ++q) {
            next[q] = inside ? load_quad<kWidth>(from, col + (q - kHalo) * kOut, cols)
                             : float4{};
        }
    };
    load(first - kRadius);
#pragma unroll 1
    for (int row = first - kRadius; row < last + kRadius; ++row) {
        float window[kQuads * kOut];
#pragma unroll
        for (int q = 0; q < kQuads; ++q) {
            *reinterpret_cast<float4*>(window + q * kOut) = next[q];
        }
        if (row + 1 < last + kRadius) load(row + 1);
        // sum[d] belongs to output row - kRadius + d, which is kRadius - d above this
        // row.
#pragma unroll
        for (int d = 0; d <= 2 * kRadius; ++d) {
#pragma unroll
            for (int across = -kRadius; across <= kRadius; ++across) {
#pragma unroll
                for (int o = 0; o < kOut; ++o) {
                    sum[d][o] +=
                        weight(kRadius - d, across) * window[kHalo * kOut + o + across];
                }
            }
        }
        if (row - kRadius >= first) {
            store_quad<kWidth>(
                target + static_cast<size_t>(row - kRadius) * cols, col, cols, sum[0]);
        }
#pragma unroll
        for (int d = 0; d < 2 * kRadius; ++d) {
#pragma unroll
            for (int o = 0; o < kOut; ++o) sum[d][o] = sum[d + 1][o];
        }
#pragma unroll
        for (int o = 0; o < kOut; ++o) sum[2 * kRadius][o] = 0.0f;
    }
}
