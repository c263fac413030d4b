// Idea: leave the neighbours to the L1 cache: no tile, just float4 loads.
// From the rung before: no shared memory and no barrier; the same window in registers.
// Requires: a block of kThreads threads; both arrays aligned to 16 bytes.
constexpr int kThreads = 128;
constexpr int kOut = 4;

__device__ constexpr float weight(int offset)
{
    return 1.0f / static_cast<float>(1 + offset * offset);
}

// Floats at to at + 3 of an array of n floats, with zeros outside; at is a multiple of
// 4. whole: the block's tile and halo are inside the array, so no quad needs a check.
__device__ float4 load_quad(const float* __restrict__ source, int at, int n, bool whole)
{
    if (whole || (at >= 0 && at + 3 < n)) {
        return *reinterpret_cast<const float4*>(source + at);
    }
    float4 quad = {};
    if (at >= 0) {
        if (at < n) quad.x = source[at];
        if (at + 1 < n) quad.y = source[at + 1];
        if (at + 2 < n) quad.z = source[at + 2];
    }
    return quad;
}

template <int kRadius>
__global__ void __launch_bounds__(kThreads) stencil1d_direct(
    const float* __restrict__ source, float* __restrict__ target, int n)
{
    // In quads: the radius rounded up, so that all accesses are whole float4.
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
