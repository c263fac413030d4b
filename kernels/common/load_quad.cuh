// Four neighbouring floats of a row, as one access of 16 bytes (kWidth = 4) or as
// single floats (kWidth = 1, for rows that do not start at multiples of 16 bytes).
// available: the number of these floats inside the matrix; with kWidth = 4 it is all
// or none.
#pragma once

template <int kWidth>
__device__ float4 load_quad(const float* __restrict__ from, int available)
{
    if constexpr (kWidth == 4) {
        return available > 0 ? *reinterpret_cast<const float4*>(from) : float4{};
    } else {
        float4 quad = {};
        if (available > 0) quad.x = from[0];
        if (available > 1) quad.y = from[1];
        if (available > 2) quad.z = from[2];
        if (available > 3) quad.w = from[3];
        return quad;
    }
}
