// The end of the rung shares: warpgroups exchange sums, and all blocks that have parts
// of a tile wait for each other.
#pragma once

#include "../../common/meeting.cuh"
#include "shares_pixels.cuh"

constexpr int kGroups = 3;  // warpgroups that multiply, a column of taps each
constexpr int kGroupThreads = 128;
constexpr int kMostTiles = 132;

// Blocks that have met, by tile.
__device__ unsigned meetings[kMostTiles];

__device__ __forceinline__ void add(float4& sum, const float4& more)
{
    sum.x += more.x;
    sum.y += more.y;
    sum.z += more.z;
    sum.w += more.w;
}

// The places of four sums: of two pieces and of two output maps, eight apart.
template <class Run> struct Place {
    float* to;
    bool left, right, low, high;

    __device__ __forceinline__ Place(float* output, int first, int outs, int out,
                                     int piece)
    {
        const int place = Run::kPlane.place_of_first_tap(first + piece);
        const int beside = Run::kPlane.place_of_first_tap(first + piece + 1);
        left = place >= 0 && piece < Run::kOwn;
        right = beside >= 0 && piece + 1 < Run::kOwn;
        low = out < outs;
        high = out + 8 < outs;
        to = output + size_t{1} * out * Run::kMap + (left ? place : beside - 1);
    }
    __device__ __forceinline__ void store(const float4& sum) const
    {
        if (low && left) to[0] = sum.x;
        if (low && right) to[1] = sum.y;
        if (high && left) to[8 * Run::kMap] = sum.z;
        if (high && right) to[8 * Run::kMap + 1] = sum.w;
    }
};
