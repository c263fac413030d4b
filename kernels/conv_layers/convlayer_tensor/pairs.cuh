// Weights that stay floats until a warp multiplies: a warp makes their halves in
// registers, in the order of the first factor of a product.
#pragma once

#include "halves.cuh"

// Keeps the compiler from using sums before the wait that this follows.
template <int kSums> __device__ __forceinline__ void arrived(float (&sums)[kSums])
{
#pragma unroll
    for (int j = 0; j < kSums; ++j) asm volatile("" : "+f"(sums[j])::"memory");
}

// The weights of a tap that a lane multiplies: of two output maps, eight apart, and of
// two pairs of input maps, eight apart.
struct Pairs {
    float2 pair[4];

    __device__ __forceinline__ void load(const float* from)
    {
#pragma unroll
        for (int q = 0; q < 4; ++q) {
            const float* here = from + q % 2 * 8 * kWeightPitch + q / 2 * 8 * kTaps;
            pair[q] = make_float2(here[0], here[4 * kTaps]);
        }
    }
    // Makes the halves of pairs from kFirst to kLast, before the next product starts.
    template <int kFirst, int kLast, int kParts>
    __device__ __forceinline__ void split(unsigned (&parts)[kParts][4]) const
    {
#pragma unroll
        for (int q = kFirst; q < kLast; ++q) {
            unsigned both[kParts];
            split_pair<kParts>(both, pair[q].x, pair[q].y);
#pragma unroll
            for (int p = 0; p < kParts; ++p) {
                parts[p][q] = both[p];
                asm volatile("" : "+r"(parts[p][q]));
            }
        }
    }
};
