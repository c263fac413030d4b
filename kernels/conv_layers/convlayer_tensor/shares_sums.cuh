// The end of the rung shares: warpgroups exchange sums, and all blocks that have parts
// of a tile wait for each other.
#pragma once

#include "shares_pixels.cuh"

constexpr int kGroups = 3;  // warpgroups that multiply, a column of taps each
constexpr int kGroupThreads = 128;
constexpr int kMostTiles = 132;

// Blocks that have met, by tile. When all have, the highest bit changes and no other,
// so it is ready for the next launch.
__device__ unsigned meetings[kMostTiles];

// The counter before this block meets the others: they need it for its highest bit.
__device__ __forceinline__ unsigned look_at(unsigned* counter)
{
    unsigned now;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];"
                 : "=r"(now)
                 : "l"(counter)
                 : "memory");
    return now;
}

// One thread of each of `blocks` blocks calls this, after a barrier; `first` in one of
// them. Then all blocks' earlier writes are visible. The counter is not returned,
// because its way back would take as long as a look at it.
__device__ __forceinline__ void meet_others(
    unsigned* counter, unsigned before, unsigned blocks, bool first)
{
    const unsigned step = first ? 0x80000000u - (blocks - 1) : 1;
    asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(counter), "r"(step)
                 : "memory");
    unsigned now;
    do {
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
                     : "=r"(now)
                     : "l"(counter)
                     : "memory");
    } while ((before ^ now) >> 31 == 0);
}

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
