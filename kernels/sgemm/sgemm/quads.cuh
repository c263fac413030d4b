// Accesses to four neighbouring floats of a row: load_quad, and blend_quad to write C.
// `available` of the four are inside the matrix: all or none if kWidth = 4.
#pragma once
#include "../../common/load_quad.cuh"

// alpha times the sums, plus beta times the old values. With beta = 0, nothing is read,
// so C may hold anything, even NaN.
template <int kWidth>
__device__ void blend_quad(float* to, const float* sums, float alpha, float beta,
                           int available)
{
    float4 quad = {alpha * sums[0], alpha * sums[1], alpha * sums[2], alpha * sums[3]};
    if (beta != 0.0f) {
        const float4 old = load_quad<kWidth>(to, available);
        quad = {quad.x + beta * old.x, quad.y + beta * old.y, quad.z + beta * old.z,
                quad.w + beta * old.w};
    }
    if constexpr (kWidth == 4) {
        if (available > 0) *reinterpret_cast<float4*>(to) = quad;
    } else {
        if (available > 0) to[0] = quad.x;
        if (available > 1) to[1] = quad.y;
        if (available > 2) to[2] = quad.z;
        if (available > 3) to[3] = quad.w;
    }
}
