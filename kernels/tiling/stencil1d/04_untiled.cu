// Idea: leave the neighbours to the L1 cache: no tile, just float4 loads.
// From the rung before: no shared memory and no barrier; the same window in registers.
// Requires: a block of kThreads threads; both arrays aligned to 16 bytes.
#include "../../common/stencil_weights.cuh"
#include "quads.cuh"

constexpr int kThreads = 128;
constexpr int kOut = 4;

template <int kRadius>
__global__ void __launch_bounds__(kThreads) stencil1d_untiled(
    const float* __restrict__ source, float* __restrict__ target, int n)
{
    // In quads: the radius rounded up, so that every access is a full float4.
    constexpr int kHalo = (kRadius + kOut - 1) / kOut;
    const int first = blockIdx.x * kThreads * kOut;
    const int i = first + threadIdx.x * kOut;
    const bool whole = first >= kHalo * kOut && first + (kThreads + kHalo) * kOut <= n;
    float window[(1 + 2 * kHalo) * kOut];
#pragma unroll
    for (int q = 0; q < 1 + 2 * kHalo; ++q) {
        *reinterpret_cast<float4*>(window + q * kOut) =
            load_quad(source, i + (q - kHalo) * kOut, n, whole);
    }
    float sum[kOut] = {};
#pragma unroll
    for (int offset = -kRadius; offset <= kRadius; ++offset) {
#pragma unroll
        for (int o = 0; o < kOut; ++o) {
            sum[o] += weight(offset) * window[kHalo * kOut + o + offset];
        }
    }
    if (i + 3 < n) {
        *reinterpret_cast<float4*>(target + i) = {sum[0], sum[1], sum[2], sum[3]};
    } else {
#pragma unroll
        for (int o = 0; o < kOut; ++o) {
            if (i + o < n) target[i + o] = sum[o];
        }
    }
}
