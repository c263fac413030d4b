// Load and store four neighbouring floats of a row, as one access of 16 bytes or as
// single floats. available: as in load_quad.cuh.
#pragma once
#include "load_quad.cuh"

template <int kWidth>
__device__ void store_quad(float* __restrict__ to, float4 quad, int available)
{
    if constexpr (kWidth == 4) {
        if (available > 0) *reinterpret_cast<float4*>(to) = quad;
    } else {
        if (available > 0) to[0] = quad.x;
        if (available > 1) to[1] = quad.y;
        if (available > 2) to[2] = quad.z;
        if (available > 3) to[3] = quad.w;
    }
}
