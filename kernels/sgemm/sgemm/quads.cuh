// What the rungs share: four neighbouring floats of a row, by one access of 16 bytes
// (kWidth = 4) or float by float (kWidth = 1, for rows that do not start at multiples
// of 16 bytes). `available` of them are inside the matrix: all or none if kWidth = 4.
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

// alpha times the sums, plus beta times the old values. With beta = 0 nothing is read:
// C may hold anything, even NaN.
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
