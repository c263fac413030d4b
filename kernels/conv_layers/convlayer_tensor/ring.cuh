// How the rung halves cuts a layer, and its ring in shared memory: tiles of 8 x kHigh
// pixels and 64 output maps for a warpgroup, 16 input maps a step.
#pragma once

#include "../../common/hopper/mbarrier.cuh"
#include "taps.cuh"

constexpr int kWide = 8;
constexpr int kHaloWide = kWide + 2;
constexpr int kTapSlots = 4;    // steps whose weights stay
constexpr int kMostSlots = 4;
constexpr int kChain = 2;   // steps that are summed in tensor cores
constexpr int kGroups = 2;  // warpgroups that multiply
constexpr int kGroupThreads = 128;
constexpr int kConsumers = kGroups * kGroupThreads;
// Four warps more, for the copies: registers are handed over by warpgroups.
constexpr int kThreads = kConsumers + kGroupThreads;

template <int kParts, int kHigh> struct alignas(128) Ring {
    static constexpr int kPixels = (kHigh + 2) * kHaloWide;
    // Of steps in flight: as many as there is room for, at most one for each of the
    // weights.
    static constexpr int kRoom = kHigh <= 14 ? kMostSlots : 3;
    static constexpr int kSlots = kRoom < kTapSlots ? kRoom : kTapSlots;
    Taps<kParts> taps[kTapSlots];
    Eight pixels[kSlots][kGroups][kParts][kEights][kPixels];
};

struct Barriers {
    Barrier full[kMostSlots], empty[kMostSlots];
};

// What a block does: its steps of 16 input maps, and its tiles of pixels. Two
// warpgroups take a tile each. A last one they share, step by step, if the weights of
// two steps are there; else the first takes it. A set is two tiles, or a last one; an
// item of the rings is a step of a set, or two of a shared tile.
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
    // The step of an item that a warpgroup has.
    __device__ __forceinline__ int step(int set, int at, int group) const
    {
        return shared(set) ? at * kGroups + group : at;
    }
    // Whether a warpgroup has anything of an item.
    __device__ __forceinline__ bool has(int set, int at, int group) const
    {
        return step(set, at, group) < steps && (set < pairs || resident || group == 0);
    }
    // Steps whose weights come with an item: those that stay, with the first tiles.
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

// Where a thread's sums of a tile belong: its first output map, row and column.
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
