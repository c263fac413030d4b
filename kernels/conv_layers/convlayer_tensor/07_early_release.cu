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
#include "fused_work.cuh"

// Steps through items in the order of their use. It counts, because divisions at each
// item would delay the thread.
struct Item {
    int set = 0;  // a step of two alternating tiles, or of a last one
    int step = 0;
    int first = 0;   // number of the first of the two tiles in the block
    int beside = 0;  // 1 for the second of them

    __device__ __forceinline__ int tile() const
    {
        return blockIdx.x + (first + beside) * gridDim.x;
    }
    __device__ __forceinline__ void next(int own, int steps)
    {
        if (beside == 0 && first + 1 < own) {
            beside = 1;
            return;
        }
        beside = 0;
        ++set;
        if (++step == steps) {
            step = 0;
            first += 2;
        }
    }
};

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

// Converts this thread's pixel of each item to halves.
template <int kParts, int kStrips, int kHigh>
__device__ __forceinline__ void split(Ring<kParts, kStrips, kHigh>& ring,
                                      Barriers& barriers,
                                      const Work<kStrips, kHigh>& work, int pixel)
{
    using Shared = Ring<kParts, kStrips, kHigh>;
    const int in_row = pixel % Shared::kRow;
    const int place = pixel / Shared::kRow * Shared::kRawPitch +
                      in_row / kHaloWide * kWide + in_row % kHaloWide + kRawLeft - 1;
    const bool mine = pixel < Shared::kPixels;
    Item at;
    for (int item = 0; item < work.items(); ++item) {
        const int raw_slot = item % kRawSlots;
        const int slot = item % kPixelSlots;
        const int maps = work.c_in - at.step * kDepth;
        at.next(work.own, work.steps);
        mbarrier_wait(&barriers.raw_full[raw_slot], item / kRawSlots % 2);
        float value[kEights][8];
        const float* from = ring.raw[raw_slot] + (mine ? place : 0);
#pragma unroll
        for (int m = 0; m < kDepth; ++m) value[m / 8][m % 8] = from[m * Shared::kRaw];
        __syncwarp();
        // Release the floats before waiting for a slot of halves.
        if (threadIdx.x % kWarp == 0) mbarrier_arrive(&barriers.raw_empty[raw_slot]);
        if (maps < kDepth) {
#pragma unroll
            for (int m = 0; m < kDepth; ++m) {
                if (m >= maps) value[m / 8][m % 8] = 0.0f;
            }
        }
        mbarrier_wait(&barriers.empty[slot], item / kPixelSlots % 2 ^ 1);
        if (mine) {
#pragma unroll
            for (int eight = 0; eight < kEights; ++eight) {
                Eight eights[kParts];
                make_eights<kParts>(eights, value[eight]);
#pragma unroll
                for (int p = 0; p < kParts; ++p) {
                    ring.pixels[slot][p][eight][pixel] = eights[p];
                }
            }
        }
        fence_proxy_async();
        __syncwarp();
        if (threadIdx.x % kWarp == 0) mbarrier_arrive(&barriers.full[slot]);
    }
}

#include "fused_products.cuh"
