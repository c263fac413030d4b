// Idea: a box of pixels is a whole step, with one barrier, not two.
// From the rung before: boxes of 16 maps, not 8; two slots of floats, not four.
// Requires: sm_90a; for the first launch kBlock threads a block, a warp for each 8
// output and 8 input maps, kWidth = 4 where c_in is a multiple of 4 and weights are
// aligned to 16 bytes, else kWidth = 1; for the second kThreads threads, n a multiple
// of 4, a grid of tiles and of groups of output maps, a tensor map of the input, boxes
// of kDepth maps x (kHigh + 2) rows x kRawPitch floats, dynamic shared memory for a
// Ring.
#include "../../common/hopper/dependent.cuh"
#include "../../common/hopper/tma.cuh"
#include "../../common/hopper/wgmma.cuh"
#include "taps.cuh"

constexpr int kWide = 8;  // pixels of a row of a strip, whose eights are contiguous
constexpr int kHaloWide = kWide + 2;
// Rows of boxes start at multiples of 16 bytes: 4 pixels before the tile, not 1.
constexpr int kRawLeft = 4;
constexpr int kTapSlots = 4;    // steps whose weights stay
constexpr int kPixelSlots = 4;  // three at least: each warpgroup holds one
constexpr int kRawSlots = 2;
constexpr bool kEarlyRelease = false;  // but after all taps are started
constexpr int kChain = 2;   // steps that are summed in tensor cores
constexpr int kGroups = 2;  // warpgroups that multiply
constexpr int kGroupThreads = 128;
constexpr int kConsumers = kGroups * kGroupThreads;
constexpr int kConsumerWarps = kConsumers / kWarp;
constexpr int kGroupWarps = kGroupThreads / kWarp;
constexpr int kPixelWarps = 7;  // and one for the copies
constexpr int kThreads = kConsumers + (1 + kPixelWarps) * kWarp;

template <int kParts, int kStrips, int kHigh> struct alignas(128) Ring {
    // A row of a tile is kStrips strips with a border each, so that eight pixels of a
    // strip and the next eight are kHaloWide apart.
    static constexpr int kRow = kStrips * kHaloWide;
    static constexpr int kPixels = (kHigh + 2) * kRow;
    static_assert(kPixels <= kPixelWarps * kWarp, "a thread has one pixel");
    static constexpr int kRawPitch = (kStrips * kWide + 1 + kRawLeft + 3) / 4 * 4;
    static constexpr int kRaw = (kHigh + 2) * kRawPitch;
    Taps<kParts> taps[kTapSlots];
    Eight pixels[kPixelSlots][kParts][kEights][kPixels];
    float raw[kRawSlots][kDepth * kRaw];
};

struct Barriers {
    Barrier taps_full[kTapSlots], taps_empty[kTapSlots];
    Barrier raw_full[kRawSlots], raw_empty[kRawSlots];
    Barrier full[kPixelSlots], empty[kPixelSlots];
};

#include "fused_work.cuh"

// What the thread does that starts all copies.
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
    wait_for_launch_before();  // it makes the taps
    copy_taps(0);
    // Copies end in the order in which they begin: pixels and weights take turns, and
    // weights come two slots before they are needed, since a slot waits for products.
    int set = 1;
    for (int item = 0; item < items; ++item) {
        if (next < items) copy_pixels(next++);
        if (set < sets && set <= work.set(item) + kTapSlots - 2) copy_taps(set++);
    }
}

// What a warp does that makes halves of pixels.
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
