// Shared by the rungs with a window in registers.
#pragma once

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
