// Idea: leave the neighbours to the L1 cache: no tile, just float4 loads.
// From the rung before: no shared memory, no barrier; 4 x kHigh outputs in registers
// instead of a column.
// Requires: a block of kAcross x kDown threads; both arrays aligned to 16 bytes; kWidth
// = 4 where cols is a multiple of 4, kWidth = 1 otherwise. kHigh is 8 up to radius 4
// and 4 beyond, or the code would outgrow the instruction cache.
constexpr int kAcross = 32;
constexpr int kDown = 8;
constexpr int kOut = 4;

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
__global__ void __launch_bounds__(kAcross * kDown) stencil2d_direct(
    const float* __restrict__ source, float* __restrict__ target, int rows, int cols)
{
    // In quads: the radius rounded up, so that all accesses are whole float4.
    constexpr int kHalo = (kRadius + kOut - 1) / kOut;
    constexpr int kQuads = 1 + 2 * kHalo;
    constexpr int kHigh = kRadius <= 4 ? 8 : 4;
    const int col = (blockIdx.x * kAcross + threadIdx.x) * kOut;
    const int first = (blockIdx.y * kDown + threadIdx.y) * kHigh;
    float sum[kHigh][kOut] = {};
#pragma unroll
    for (int y = -kRadius; y < kHigh + kRadius; ++y) {
        const int row = first + y;
        const bool inside = row >= 0 && row < rows;
        const float* from = source + static_cast<size_t>(inside ? row : 0) * cols;
        float window[kQuads * kOut];
#pragma unroll
        for (int q = 0; q < kQuads; ++q) {
            *reinterpret_cast<float4*>(window + q * kOut) =
                inside ? load_quad<kWidth>(from, col + (q - kHalo) * kOut, cols)
                       : float4{};
        }
        // This row is y - o below output o of the thread; it counts if it is within
        // kRadius.
#pragma unroll
        for (int o = 0; o < kHigh; ++o) {
            if (y - o >= -kRadius && y - o <= kRadius) {
#pragma unroll
                for (int across = -kRadius; across <= kRadius; ++across) {
#pragma unroll
                    for (int x = 0; x < kOut; ++x) {
                        sum[o][x] +=
                            weight(y - o, across) * window[kHalo * kOut + x + across];
                    }
                }
            }
        }
    }
#pragma unroll
    for (int o = 0; o < kHigh; ++o) {
        if (first + o < rows) {
            store_quad<kWidth>(
                target + static_cast<size_t>(first + o) * cols, col, cols, sum[o]);
        }
    }
}
