// What the rungs share whose boxes of pixels are whole steps: the order of items, the
// copies of their pixels, and the halves of these. A rung defines Ring and Barriers
// before.
#pragma once

#include "../../common/hopper/tma.cuh"
#include "fused_work.cuh"

// An item, in the order in which items are used. Counters, because a thread would wait
// for divisions at each item.
struct Item {
    int set = 0;     // of steps whose weights are used together
    int step = 0;
    int first = 0;   // of the block's two tiles that take turns, or of a last one
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

// A slot of a ring, and the parity of the phase that a thread waits for there.
template <int kSlots> struct Turn {
    int slot = 0, parity;

    __device__ __forceinline__ void next()
    {
        if (++slot == kSlots) {
            slot = 0;
            parity ^= 1;
        }
    }
};

// What the thread does that starts the copies of pixels: one for each item.
template <int kStrips, int kHigh> struct PixelCopies {
    const Work<kStrips, kHigh>& work;
    const TensorMap& input;
    Item at{};
    Turn<kRawSlots> turn{0, 1};

    __device__ __forceinline__ bool more() const { return at.first < work.own; }

    template <class Shared>
    __device__ __forceinline__ void next(Shared& ring, Barriers& barriers)
    {
        const unsigned tile = at.tile();
        const unsigned above = tile / work.across;
        const unsigned image = above / work.down;
        const int x = (tile - above * work.across) * (kStrips * kWide);
        const int y = (above - image * work.down) * kHigh;
        const int slot = turn.slot;
        mbarrier_wait(&barriers.raw_empty[slot], turn.parity);
        mbarrier_arrive_expect(&barriers.raw_full[slot], sizeof(ring.raw[slot]));
        tma_load(ring.raw[slot], input, x - kRawLeft, y - 1,
                 image * work.c_in + at.step * kDepth, &barriers.raw_full[slot]);
        at.next(work.own, work.steps);
        turn.next();
    }
};

// What a thread does that makes halves of one pixel of each item.
template <int kParts, int kStrips, int kHigh> struct PixelSplits {
    using Shared = Ring<kParts, kStrips, kHigh>;

    int pixel, place;
    Turn<kRawSlots> raw{0, 0};
    Turn<kPixelSlots> halves{0, 1};

    __device__ __forceinline__ explicit PixelSplits(int pixel) : pixel(pixel)
    {
        const int in_row = pixel % Shared::kRow;
        place = pixel / Shared::kRow * Shared::kRawPitch + in_row / kHaloWide * kWide +
                in_row % kHaloWide + kRawLeft - 1;
        if (pixel >= Shared::kPixels) place = 0;
    }
    // There may be fewer maps than a step has.
    __device__ __forceinline__ void next(Shared& ring, Barriers& barriers, int maps)
    {
        mbarrier_wait(&barriers.raw_full[raw.slot], raw.parity);
        float value[kEights][8];
        const float* from = ring.raw[raw.slot] + place;
#pragma unroll
        for (int m = 0; m < kDepth; ++m) value[m / 8][m % 8] = from[m * Shared::kRaw];
        __syncwarp();
        // The next copy need not wait for the slot of the halves.
        if (threadIdx.x % kWarp == 0) mbarrier_arrive(&barriers.raw_empty[raw.slot]);
        raw.next();
        if (maps < kDepth) {
#pragma unroll
            for (int m = 0; m < kDepth; ++m) {
                if (m >= maps) value[m / 8][m % 8] = 0.0f;
            }
        }
        mbarrier_wait(&barriers.empty[halves.slot], halves.parity);
        if (pixel < Shared::kPixels) {
#pragma unroll
            for (int eight = 0; eight < kEights; ++eight) {
                Eight eights[kParts];
                make_eights<kParts>(eights, value[eight]);
#pragma unroll
                for (int p = 0; p < kParts; ++p) {
                    ring.pixels[halves.slot][p][eight][pixel] = eights[p];
                }
            }
        }
        fence_proxy_async();
        __syncwarp();
        if (threadIdx.x % kWarp == 0) mbarrier_arrive(&barriers.full[halves.slot]);
        halves.next();
    }
};
