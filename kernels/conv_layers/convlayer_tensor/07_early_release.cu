// Idea: release a slot as soon as it has been read, so that it is refilled earlier.
// From the rung before: whole_steps again, with two launches. A slot of halves is
// released after the next step's first tap has started, not after all its taps have;
// a slot of floats once all of them are in registers, before any half is stored.
// Counters replace divisions at each item.
// Requires: sm_90a. First launch: blocks of kBlock threads, a warp per 8 output and 8
// input maps; kWidth = 4 if c_in is a multiple of 4 and weights are aligned to 16
// bytes, else kWidth = 1. Second launch: blocks of kThreads threads; n a multiple of
// 4; a grid of (tiles, groups of output maps); a tensor map of the input, boxes of
// kDepth maps x (kHigh + 2) rows x kRawPitch floats; dynamic shared memory for a
// Ring.
#include "fused_tile.cuh"

constexpr int kRawSlots = 2;
constexpr bool kEarlyRelease = true;  // release slots after the next step's first tap

#include "fused_warps.cuh"
#include "whole_steps_ring.cuh"
#include "fused_split.cuh"

// Starts all copies; one thread calls it.
template <int kParts, int kStrips, int kHigh>
__device__ __forceinline__ void copy(Ring<kParts, kStrips, kHigh>& ring,
                                     Barriers& barriers,
                                     const Work<kStrips, kHigh>& work,
                                     const Taps<kParts>* __restrict__ taps,
                                     const TensorMap& input)
{
    const int items = work.items();
    const int sets = work.resident() ? work.steps : work.sets();
    Item ahead;  // the item whose pixels are copied next
    int copied = 0;
    const auto copy_pixels = [&]() {
        const int slot = copied % kRawSlots;
        const unsigned tile = ahead.tile();
        const unsigned above = tile / work.across;
        const unsigned image = above / work.down;
        const int x = (tile - above * work.across) * (kStrips * kWide);
        const int y = (above - image * work.down) * kHigh;
        mbarrier_wait(&barriers.raw_empty[slot], copied / kRawSlots % 2 ^ 1);
        mbarrier_arrive_expect(&barriers.raw_full[slot], sizeof(ring.raw[slot]));
        tma_load(ring.raw[slot], input, x - kRawLeft, y - 1,
                 image * work.c_in + ahead.step * kDepth, &barriers.raw_full[slot]);
        ahead.next(work.own, work.steps);
        ++copied;
    };
    int set = 0;  // the set whose weights are copied next
    int tap_step = 0;
    const auto copy_taps = [&]() {
        const int slot = set % kTapSlots;
        mbarrier_wait(&barriers.taps_empty[slot], set / kTapSlots % 2 ^ 1);
        mbarrier_arrive_expect(&barriers.taps_full[slot], sizeof(ring.taps[slot]));
        bulk_load(&ring.taps[slot], taps + blockIdx.y * work.steps + tap_step,
                  sizeof(ring.taps[slot]), &barriers.taps_full[slot]);
        ++set;
        if (++tap_step == work.steps) tap_step = 0;
    };
    while (copied < min(kRawSlots, items)) copy_pixels();
    wait_for_launch_before();  // which makes the taps
    copy_taps();
    // Copies complete in the order of their start, so pixels and weights alternate.
    // Weights are at most kTapSlots - 2 steps ahead: products may still read two slots.
    Item here;
    for (int item = 0; item < items; ++item) {
        if (copied < items) copy_pixels();
        if (set < sets && set <= here.set + kTapSlots - 2) copy_taps();
        here.next(work.own, work.steps);
    }
}

#include "fused_products.cuh"
