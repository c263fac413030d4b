// Idea: a thread computes kOut outputs from one window of floats in registers.
// From the rung before: float4 loads and float4 reads of the tile; each float read
// serves up to kOut outputs.
// Requires: a block of kThreads threads; both arrays aligned to 16 bytes.
#include "../../common/stencil_weights.cuh"
#include "quads.cuh"

constexpr int kThreads = 128;
constexpr int kOut = 4;

template <int kRadius>
__global__ void __launch_bounds__(kThreads) stencil1d_windowed(
    const float* __restrict__ source, float* __restrict__ target, int n)
{
    // In quads: the radius rounded up, so that every access is a full float4.
    constexpr int kHalo = (kRadius + kOut - 1) / kOut;
    constexpr int kQuads = kThreads + 2 * kHalo;
    __shared__ float4 tile[kQuads];
    const int first = blockIdx.x * kThreads * kOut;
    const bool whole = first >= kHalo * kOut && first + (kThreads + kHalo) * kOut <= n;
#pragma unroll
    for (int start = 0; start < kQuads; start += kThreads) {
        const int i = start + threadIdx.x;
        if (i < kQuads) {
            tile[i] = load_quad(source, first + (i - kHalo) * kOut, n, whole);
        }
    }
    __syncthreads();  // tile and halo are loaded before any thread reads them

    float window[(1 + 2 * kHalo) * kOut];
#pragma unroll
    for (int q = 0; q < 1 + 2 * kHalo; ++q) {
        *reinterpret_cast<float4*>(window + q * kOut) = tile[threadIdx.x + q];
    }
    float sum[kOut] = {};
#pragma unroll
    for (int offset = -kRadius; offset <= kRadius; ++offset) {
#pragma unroll
        for (int o = 0; o < kOut; ++o) {
            sum[o] += weight(offset) * window[kHalo * kOut + o + offset];
        }
    }
    const int i = first + threadIdx.x * kOut;
    if (i + 3 < n) {
        *reinterpret_cast<float4*>(target + i) = {sum[0], sum[1], sum[2], sum[3]};
    } else {
#pragma unroll
        for (int o = 0; o < kOut; ++o) {
            if (i + o < n) target[i + o] = sum[o];
        }
    }
}
