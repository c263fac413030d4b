// The work of a block in the rungs that make halves of pixels in shared memory, from
// fused on. A rung defines the numbers of slots before including this.
#pragma once

#include "fused_tile.cuh"

struct Barriers {
    Barrier taps_full[kTapSlots], taps_empty[kTapSlots];
    Barrier raw_full[kRawSlots], raw_empty[kRawSlots];
    Barrier full[kPixelSlots], empty[kPixelSlots];
};

// The work of a block: `own` tiles, every gridDim.x-th one. It takes two tiles at a
// time through all steps, and a last one alone. An item is one step of one tile.
template <int kStrips, int kHigh> struct Work {
    int n, c_in, c_out, steps, across, down, own;

    __device__ __forceinline__ Work(int n, int c_in, int c_out, int images)
        : n(n), c_in(c_in), c_out(c_out)
    {
        steps = (c_in + kDepth - 1) / kDepth;
        across = (n + kStrips * kWide - 1) / (kStrips * kWide);
        down = (n + kHigh - 1) / kHigh;
        const int left = across * down * images - static_cast<int>(blockIdx.x);
        own = (left + static_cast<int>(gridDim.x) - 1) / static_cast<int>(gridDim.x);
    }
    __device__ __forceinline__ bool resident() const { return steps <= kTapSlots; }
    __device__ __forceinline__ int items() const { return own * steps; }
    // A set is a step of two tiles, or of a last one; it loads its weights once.
    __device__ __forceinline__ int sets() const { return (own + 1) / 2 * steps; }
    // The set, the tile and the step of an item.
    __device__ __forceinline__ int set(int item) const
    {
        const int two = 2 * steps;
        const int first = item / two * two;
        const int beside = first / two * 2 + 1 < own ? 2 : 1;
        return first / 2 + (item - first) / beside;
    }
    __device__ __forceinline__ int tile(int item) const
    {
        const int pair = item / (2 * steps) * 2;
        const int mine = pair + (pair + 1 < own ? item % 2 : 0);
        return blockIdx.x + mine * gridDim.x;
    }
    __device__ __forceinline__ int step(int item) const { return set(item) % steps; }
    __device__ __forceinline__ int tap_slot(int set) const
    {
        return resident() ? set % steps : set % kTapSlots;
    }
    // The same without a division, for a caller that knows the step.
    __device__ __forceinline__ int tap_slot(int set, int step) const
    {
        return resident() ? step : set % kTapSlots;
    }
    __device__ __forceinline__ int tap_parity(int set) const
    {
        return resident() ? 0 : set / kTapSlots % 2;
    }
    __device__ __forceinline__ int x(int tile) const
    {
        return tile % across * (kStrips * kWide);
    }
    __device__ __forceinline__ int y(int tile) const
    {
        return tile / across % down * kHigh;
    }
    __device__ __forceinline__ int image(int tile) const
    {
        return tile / (across * down);
    }
};
