// The work of a block in the rung halves, and its ring in shared memory. A warpgroup
// computes 8 x kHigh pixels of 64 output maps, with 16 input maps per step.
#pragma once

#include "../../common/hopper/mbarrier.cuh"
#include "taps.cuh"

constexpr int kWide = 8;
constexpr int kHaloWide = kWide + 2;
constexpr int kTapSlots = 4;    // the weights of up to 4 steps stay
constexpr int kPixelSlots = 3;
constexpr int kChain = 2;   // steps whose products tensor cores add up
constexpr int kGroups = 2;  // warpgroups that multiply
constexpr int kGroupThreads = 128;
constexpr int kConsumers = kGroups * kGroupThreads;
// One more warpgroup for the copies: registers are reallocated by warpgroups.
constexpr int kThreads = kConsumers + kGroupThreads;

template <int kParts, int kHigh> struct alignas(128) Ring {
    static constexpr int kPixels = (kHigh + 2) * kHaloWide;
    Taps<kParts> taps[kTapSlots];
    Eight pixels[kPixelSlots][kGroups][kParts][kEights][kPixels];
};

struct Barriers {
    Barrier full[kPixelSlots], empty[kPixelSlots];
};

// The work of a block: its steps of 16 input maps, and its tiles of pixels. Each of two
// warpgroups computes a tile. They share a last tile, in alternating steps, if all
// weights are resident; otherwise the first computes it. A set is two tiles, or a last
// one; an item of the ring is one step of a set, or two steps of a shared tile.
template <int kHigh> struct Work {
    int n, c_in, c_out;
    int first, steps;
    int all;        // steps of all blocks
    bool resident;  // the weights of all steps stay
    int across, down;
    int first_tile, stride;
    int pairs, sets;
    bool odd;

    __device__ __forceinline__ Work(int n, int c_in, int c_out, int images)
        : n(n), c_in(c_in), c_out(c_out)
    {
        all = (c_in + kDepth - 1) / kDepth;
        first = all * blockIdx.x / gridDim.x;
        steps = all * (blockIdx.x + 1) / gridDim.x - first;
        resident = steps <= kTapSlots;
        across = (n + kWide - 1) / kWide;
        down = (n + kHigh - 1) / kHigh;
        first_tile = blockIdx.y;
        stride = gridDim.y;
        const int own = (across * down * images - first_tile + stride - 1) / stride;
        pairs = own / kGroups;
        odd = own % kGroups != 0;
        sets = pairs + odd;
    }
    __device__ __forceinline__ bool shared(int set) const
    {
        return set == pairs && resident;
    }
    __device__ __forceinline__ int items(int set) const
    {
        return shared(set) ? (steps + kGroups - 1) / kGroups : steps;
    }
    __device__ __forceinline__ int tile(int set, int group) const
    {
        return first_tile + (set * kGroups + (set < pairs ? group : 0)) * stride;
    }
    // The step that a warpgroup multiplies of an item.
    __device__ __forceinline__ int step(int set, int at, int group) const
    {
        return shared(set) ? at * kGroups + group : at;
    }
    // Tells whether a warpgroup has a step of an item.
    __device__ __forceinline__ bool has(int set, int at, int group) const
    {
        return step(set, at, group) < steps && (set < pairs || resident || group == 0);
    }
    // The steps whose weights an item copies; the first set copies resident weights.
    __device__ __forceinline__ int taps(int set, int at) const
    {
        if (resident && set > 0) return 0;
        return shared(set) ? min(kGroups, steps - at * kGroups) : 1;
    }
    __device__ __forceinline__ int tap_slot(int item, int step) const
    {
        return resident ? step : item % kTapSlots;
    }
    __device__ __forceinline__ size_t map() const
    {
        return static_cast<size_t>(n) * n;
    }
    __device__ __forceinline__ int first_out() const { return blockIdx.z * kOuts; }
};

// The place of a thread's sums of a tile: their first output map, row and column.
template <int kHigh> struct Place {
    int out, x, y;
    float* to;

    __device__ __forceinline__ Place(const Work<kHigh>& work, float* sums, int tile,
                                     int thread)
    {
        const int in_image = tile % (work.across * work.down);
        const size_t image = tile / (work.across * work.down);
        x = in_image % work.across * kWide + thread % 4 * 2;
        y = in_image / work.across * kHigh;
        out = work.first_out() + thread / kWarp * 16 + thread % kWarp / 4;
        to = sums + (image * work.c_out + out) * work.map() + y * work.n + x;
    }
};
