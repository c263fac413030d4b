// The items of a block in the rungs early_release and overlapped, and the warps that
// make halves of pixels.
#pragma once

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
        // Release the floats before waiting for a slot of halves, but not before the
        // loads have ended, which the arrival of one lane does not wait for.
        fence_proxy_async();
        __syncwarp();
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
