// Idea: a thread computes a tile of 4 x kHigh outputs, all in registers.
// From the rung before: no shared memory, no barrier: float4 loads, and the neighbours
// are left to the L1 cache; a tile of outputs instead of a column.
// Requires: a block of kAcross x kDown threads; both arrays aligned to 16 bytes; kWidth
// = 4 where cols is a multiple of 4, kWidth = 1 otherwise. kHigh is 8 up to radius 4
// and 4 beyond, because the code must fit the instruction cache.
#include "../../common/stencil_weights.cuh"
#include "quads.cuh"

constexpr int kAcross = 32;
constexpr int kDown = 8;

template <int kRadius, int kWidth>
__global__ void __launch_bounds__(kAcross * kDown) stencil2d_register_tile(
    const float* __restrict__ source, float* __restrict__ target, int rows, int cols)
{
    // In quads: the radius rounded up, so that every access is a full float4.
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
        // This row is y - o rows below output o of the thread; it counts if that is
        // within kRadius.
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
