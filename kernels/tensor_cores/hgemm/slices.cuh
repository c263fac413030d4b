// Slices of k, as rungs with wgmma copy them.
#pragma once
#include "../place.cuh"

constexpr int kDepth = 64;  // steps of k in a tile: 128 bytes of halves
constexpr int kBoxBytes = kDepth * 128;  // a box of B has 64 columns in kDepth rows

__device__ __forceinline__ int slices_of(int K)
{
    return (K + kDepth - 1) / kDepth;
}
