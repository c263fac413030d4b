// The weights of the stencils: they fall with the square of the distance, and become
// constants in the machine code when the loops over neighbours are unrolled.
#pragma once

__device__ constexpr float weight(int offset)
{
    return 1.0f / static_cast<float>(1 + offset * offset);
}

__device__ constexpr float weight(int down, int across)
{
    return 1.0f / static_cast<float>(1 + down * down + across * across);
}
