// Idea: a box of pixels is a whole step, with one barrier, not two.
// From the rung before: boxes of 16 maps, not 8; three slots of floats, which go back
// as soon as they are in registers, and three of halves.
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
constexpr int kPixelSlots = 3;  // each warpgroup holds one
constexpr int kRawSlots = 3;
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
#include "steps.cuh"

// What the thread does that starts all copies.
template <int kParts, int kStrips, int kHigh>
__device__ __forceinline__ void copy(Ring<kParts, kStrips, kHigh>& ring,
                                     Barriers& barriers,
                                     const Work<kStrips, kHigh>& work,
                                     const Taps<kParts>* __restrict__ taps,
                                     const TensorMap& input)
{
    const int sets = work.resident() ? work.steps : work.sets();
    PixelCopies<kStrips, kHigh> pixels{work, input};
    int set = 0;  // whose weights come next
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
    for (int i = 0; i < kRawSlots && pixels.more(); ++i) pixels.next(ring, barriers);
    wait_for_launch_before();  // it makes the taps
    copy_taps();
    // Copies end in the order in which they begin: pixels and weights take turns, and
    // weights come two slots before they are needed, since a slot waits for products.
    for (Item here; here.first < work.own; here.next(work.own, work.steps)) {
        if (pixels.more()) pixels.next(ring, barriers);
        if (set < sets && set <= here.set + kTapSlots - 2) copy_taps();
    }
}

// What a warp does that makes halves of pixels.
template <int kParts, int kStrips, int kHigh>
__device__ __forceinline__ void split(Ring<kParts, kStrips, kHigh>& ring,
                                      Barriers& barriers,
                                      const Work<kStrips, kHigh>& work, int pixel)
{
    PixelSplits<kParts, kStrips, kHigh> pixels(pixel);
    for (Item at; at.first < work.own; at.next(work.own, work.steps)) {
        pixels.next(ring, barriers, work.c_in - at.step * kDepth);
    }
}

#include "fused_kernel.cuh"
