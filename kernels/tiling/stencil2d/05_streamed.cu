// Idea: a thread walks down its columns and adds each row to several outputs.
// From the rung before: a strip of kHigh rows per thread, so few rows are loaded twice;
// the sums move up with each row.
// Requires: a block of kThreads threads; both arrays aligned to 16 bytes; kWidth = 4
// where cols is a multiple of 4, kWidth = 1 otherwise.
constexpr int kThreads = 128;
constexpr int kOut = 4;
constexpr int kHigh = 128;

__device__ constexpr float weight(int down, int across)
{
    return 1.0f / static_cast<float>(1 + down * down + across * across);
}

// Floats col to col + 3 of a row of cols floats, with zeros outside the row.
template <int kWidth>
__device__ float4 load_quad(const float* __restrict__ row, int col, int cols)
{
    float4 quad = {};
    if constexpr (kWidth == 4) {
        if (col >= 0 && col < cols) quad = *reinterpret_cast<const float4*>(row + col);
    } else if (col >= 0) {
        if (col < cols) quad.x = row[col];
        if (col + 1 < cols) quad.y = row[col + 1];
        if (col + 2 < cols) quad.z = row[col + 2];
        if (col + 3 < cols) quad.w = row[col + 3];
    }
    return quad;
}

template <int kWidth>
__device__ void store_quad(float* __restrict__ row, int col, int cols, const float* sum)
{
    if constexpr (kWidth == 4) {
        if (col < cols) {
            *reinterpret_cast<float4*>(row + col) = {sum[0], sum[1], sum[2], sum[3]};
        }
    } else {
        for (int o = 0; o < kOut; ++o) {
            if (col + o < cols) row[col + o] = sum[o];
        }
    }
}

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
    // Load a row one step ahead, so that its loads are in flight while this step
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
