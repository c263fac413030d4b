// The product that splits A in registers, while the other warpgroup multiplies.
#pragma once

#include "turns.cuh"

struct Left {
    using Element = float;
    static constexpr int kPitch = kSlice;
    int own, lane;
    float above, below;  // scales of the lane's rows

    // In this order, lanes that read at the same time read all banks.
    static __device__ __forceinline__ int row_of(int lane)
    {
        return lane / 8 + lane / 4 % 2 * 4;
    }

    // For a tile in which this warp's rows begin at `top`.
    __device__ __forceinline__ Left(const Result& to, int top, int warp, int lane)
        : own(warp * 16 + row_of(lane)), lane(lane)
    {
        const int y = top + row_of(lane);
        above = scale_of(to.row_exponents[min(y, to.m - 1)]);
        below = scale_of(to.row_exponents[min(y + 8, to.m - 1)]);
    }

    __device__ __forceinline__ void fragments(const Element* a, unsigned (&high)[2][4],
                                              unsigned (&low)[2][4]) const
    {
        const auto split = [](float x, float y, float scale, unsigned& h, unsigned& l) {
            split_pair(multiply_exactly(x, scale), multiply_exactly(y, scale), h, l);
        };
#pragma unroll
        for (int s = 0; s < 2; ++s) {
            const int quad = (4 * s + lane % 4) ^ (own % 8);
            const float* row = a + own * kPitch + quad * 4;
            const float4 v = *reinterpret_cast<const float4*>(row);
            const float4 w = *reinterpret_cast<const float4*>(row + 8 * kPitch);
            split(v.x, v.y, above, high[s][0], low[s][0]);
            split(w.x, w.y, below, high[s][1], low[s][1]);
            split(v.z, v.w, above, high[s][2], low[s][2]);
            split(w.z, w.w, below, high[s][3], low[s][3]);
        }
    }
};
