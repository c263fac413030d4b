// Idea: a box of pixels holds a whole step, which then needs one barrier, not two.
// From the rung before: boxes of 16 maps, not 8; two slots of floats, not four.
// Requires: sm_90a. First launch: blocks of kBlock threads, a warp per 8 output and 8
// input maps; kWidth = 4 if c_in is a multiple of 4 and weights are aligned to 16
// bytes, else kWidth = 1. Second launch: blocks of kThreads threads; n a multiple of
// 4; a grid of (tiles, groups of output maps); a tensor map of the input, boxes of
// kDepth maps x (kHigh + 2) rows x kRawPitch floats; dynamic shared memory for a
// Ring.
#include "fused_tile.cuh"

constexpr int kRawSlots = 2;
constexpr bool kEarlyRelease = false;  // release slots after all taps have started

#include "fused_warps.cuh"
#include "whole_steps_ring.cuh"
#include "fused_work.cuh"

// Starts all copies; one thread calls it.
template <int kParts, int kStrips, int kHigh>
__device__ __forceinline__ void copy(Ring<kParts, kStrips, kHigh>& ring,
                                     Barriers& barriers,
                                     const Work<kStrips, kHigh>& work,
                                     const Taps<kParts>* __restrict__ taps,
                                     const TensorMap& input)
{
    const auto copy_pixels = [&](int item) {
        const int slot = item % kRawSlots;
        const int tile = work.tile(item);
        const int map = work.image(tile) * work.c_in + work.step(item) * kDepth;
        mbarrier_wait(&barriers.raw_empty[slot], item / kRawSlots % 2 ^ 1);
        mbarrier_arrive_expect(&barriers.raw_full[slot], sizeof(ring.raw[slot]));
        tma_load(ring.raw[slot], input, work.x(tile) - kRawLeft, work.y(tile) - 1, map,
                 &barriers.raw_full[slot]);
    };
    const auto copy_taps = [&](int set) {
        const int slot = work.tap_slot(set);
        mbarrier_wait(&barriers.taps_empty[slot], set / kTapSlots % 2 ^ 1);
        mbarrier_arrive_expect(&barriers.taps_full[slot], sizeof(ring.taps[slot]));
        bulk_load(&ring.taps[slot], taps + blockIdx.y * work.steps + set % work.steps,
                  sizeof(ring.taps[slot]), &barriers.taps_full[slot]);
    };
    const int items = work.items();
    const int sets = work.resident() ? work.steps : work.sets();
    int next = 0;
    for (; next < min(kRawSlots, items); ++next) copy_pixels(next);
    wait_for_launch_before();  // which makes the taps
    copy_taps(0);
    // Copies complete in the order of their start, so pixels and weights alternate.
    // Weights are at most kTapSlots - 2 steps ahead: products may still read two slots.
    int set = 1;
    for (int item = 0; item < items; ++item) {
        if (next < items) copy_pixels(next++);
        if (set < sets && set <= work.set(item) + kTapSlots - 2) copy_taps(set++);
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
    for (int item = 0; item < work.items(); ++item) {
        const int raw_slot = item % kRawSlots;
        const int slot = item % kPixelSlots;
        const int maps = work.c_in - work.step(item) * kDepth;
        mbarrier_wait(&barriers.empty[slot], item / kPixelSlots % 2 ^ 1);
        mbarrier_wait(&barriers.raw_full[raw_slot], item / kRawSlots % 2);
        if (pixel < Shared::kPixels) {
            const float* from = ring.raw[raw_slot] + place;
#pragma unroll
            for (int eight = 0; eight < kEights; ++eight) {
                float value[8];
#pragma unroll
                for (int m = 0; m < 8; ++m) {
                    const int map = eight * 8 + m;
                    value[m] = map < maps ? from[map * Shared::kRaw] : 0.0f;
                }
                Eight eights[kParts];
                make_eights<kParts>(eights, value);
#pragma unroll
                for (int p = 0; p < kParts; ++p) {
                    ring.pixels[slot][p][eight][pixel] = eights[p];
                }
            }
        }
        fence_proxy_async();
        __syncwarp();
        if (threadIdx.x % kWarp == 0) {
            mbarrier_arrive(&barriers.raw_empty[raw_slot]);
            mbarrier_arrive(&barriers.full[slot]);
        }
    }
}

#include "fused_products.cuh"
