// The end of the rungs for few rows: the sums of a tile, from all blocks of a cluster.
#pragma once

#include "few_tile.cuh"
#include "mend.cuh"

// Adds up `kSums` sums of each element, to which sums_of(i, row, column) points, and
// stores one of `kParts` shares of the tile.
template <int kColumns, int kParts, int kSums, int kThreads, class Find>
__device__ __forceinline__ void add_share(const Result& to, Find sums_of, int part,
                                          int y, int x)
{
    constexpr int kQuads = kTileRows * kColumns / 4 / kParts;
    static_assert(kQuads % 32 == 0, "mend takes whole warps");
    const bool quads = to.n % 4 == 0 && to.ldc % 4 == 0 &&
                       reinterpret_cast<unsigned long long>(to.C) % 16 == 0;
    for (int q = threadIdx.x; q < kQuads; q += kThreads) {
        const int at = part * kQuads + q, row = at / (kColumns / 4);
        const int column = at % (kColumns / 4) * 4;
        float values[4] = {};
#pragma unroll
        for (int i = 0; i < kSums; ++i) {
            const float* from = sums_of(i, row, column);
            const float4 v = *reinterpret_cast<const float4*>(from);
            const float adds[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                // Keeps a sum below 2^-126; `+` would flush it to zero.
                values[j] = multiply_add(adds[j], 1.0f, values[j]);
            }
        }
        mend(
            to, values, [&](int) { return y + row; },
            [&](int j) { return x + column + j; });
        if (quads && to.beta == 0.0f) {
            if (y + row < to.m && x + column < to.n) {
                const size_t start = static_cast<size_t>(y + row) * to.ldc;
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    values[j] = multiply_exactly(to.alpha, values[j]);
                }
                *reinterpret_cast<float4*>(to.C + start + x + column) =
                    make_float4(values[0], values[1], values[2], values[3]);
            }
        } else {
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const bool inside = y + row < to.m && x + column + j < to.n;
                put(to, y + row, x + column + j, values[j], inside);
            }
        }
    }
}
