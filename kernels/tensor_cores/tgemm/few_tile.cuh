// The tile of the rungs for few rows: its rows, its stages, and the split of A.
#pragma once

#include "tf32_parts.cuh"

constexpr int kTileRows = 32, kDepth = 32;  // of k, in a stage

// A block's part of k, and its tile of C, which begins at (y, x).
struct TilePart {
    int part, tile, y, x;
};
template <int kParts, int kColumns> __device__ __forceinline__ TilePart find_part(int m)
{
    const int part = blockIdx.x % kParts, tile = blockIdx.x / kParts;
    const int down = (m + kTileRows - 1) / kTileRows;
    return {part, tile, tile % down * kTileRows, tile / down * kColumns};
}

// Swizzled boxes of 32 x 32 floats. Splitting A replaces it by its high parts, with low
// parts behind them.
template <int kColumns> struct alignas(1024) StageOf {
    float b[kColumns / 32][kDepth * 32];
    float a[kTileRows * kDepth];
    float a_low[kTileRows * kDepth];
};

// Splits 8 of k of A, a row per lane: first those with even k, then those with odd k.
// Returns the factor for B that undoes scaling.
__device__ __forceinline__ float split_a(float* a, int row, int eighth)
{
    float4* quads[2];
    float values[8];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const int quad = (2 * eighth + i) ^ row % 8;
        quads[i] = reinterpret_cast<float4*>(a + row * kDepth) + quad;
        const float4 v = *quads[i];
        values[4 * i] = v.x, values[4 * i + 1] = v.y;
        values[4 * i + 2] = v.z, values[4 * i + 3] = v.w;
    }
    const bool raised = raise_tiny(values);
    float high[8], low[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const Parts parts = split(values[i]);
        high[i % 2 * 4 + i / 2] = __uint_as_float(parts.high);
        low[i % 2 * 4 + i / 2] = __uint_as_float(parts.low);
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const float *h = high + 4 * i, *l = low + 4 * i;
        *quads[i] = make_float4(h[0], h[1], h[2], h[3]);
        quads[i][kTileRows * kDepth / 4] = make_float4(l[0], l[1], l[2], l[3]);
    }
    return raised ? kDown : 1.0f;
}
