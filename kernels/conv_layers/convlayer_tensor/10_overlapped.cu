// Idea: store a tile's sums while the first products of the next tile run.
// From the rung before: early_release again, with its launch that makes the weights'
// halves. Its warpgroups stored a tile's sums before they went on, both at about the
// same time, and then no tensor core was busy. Now a first step starts new sums and
// stores the old ones between its products. Copies start before the block's threads
// meet, in the order in which they are needed, and a tile's place is counted.
// Requires: sm_90a; both launches, their grids, alignments, tensor map and shared
// memory as in early_release.
#include "fused_tile.cuh"

constexpr int kRawSlots = 2;

#include "fused_warps.cuh"
#include "whole_steps_ring.cuh"
#include "fused_split.cuh"
#include "overlapped_products.cuh"
#include "to_taps.cuh"

// Starts all copies; one thread calls it.
template <int kParts, int kStrips, int kHigh> struct Copies {
    Ring<kParts, kStrips, kHigh>& ring;
    Barriers& barriers;
    const Work<kStrips, kHigh>& work;
    const Taps<kParts>* taps;
    const TensorMap& input;
    Item ahead;  // the item whose pixels are copied next
    int copied = 0;

    __device__ __forceinline__ void copy_pixels()
    {
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
    }
    __device__ __forceinline__ void copy_taps(int set)
    {
        const int slot = set % kTapSlots;
        mbarrier_wait(&barriers.taps_empty[slot], set / kTapSlots % 2 ^ 1);
        mbarrier_arrive_expect(&barriers.taps_full[slot], sizeof(ring.taps[slot]));
        bulk_load(&ring.taps[slot], taps + blockIdx.y * work.steps + set % work.steps,
                  sizeof(ring.taps[slot]), &barriers.taps_full[slot]);
    }
    // The first copies, in the order in which they are needed.
    __device__ __forceinline__ void start()
    {
        copy_pixels();
        wait_for_launch_before();  // which makes the taps
        copy_taps(0);
        while (copied < min(kRawSlots, work.items())) copy_pixels();
    }
    __device__ __forceinline__ void go_on()
    {
        const int items = work.items();
        const int sets = work.resident() ? work.steps : work.sets();
        // Copies complete in the order of their start, so pixels and weights alternate.
        // Weights are at most kTapSlots - 2 steps ahead: products may still read two
        // slots.
        int set = 1;  // the set whose weights are copied next
        Item here;
        for (int item = 0; item < items; ++item) {
            if (copied < items) copy_pixels();
            if (set < sets && set <= here.set + kTapSlots - 2) copy_taps(set++);
            here.next(work.own, work.steps);
        }
    }
};

template <int kParts, int kStrips, int kHigh>
__global__ void __launch_bounds__(kThreads, 1)
    convlayer_overlapped(const Taps<kParts>* __restrict__ taps,
                         const __grid_constant__ TensorMap input,
                         float* __restrict__ output, int n, int c_in, int c_out,
                         int images)
{
    using Shared = Ring<kParts, kStrips, kHigh>;
    extern __shared__ __align__(128) unsigned char shared_bytes[];
    Shared& ring = *reinterpret_cast<Shared*>(shared_bytes);
    __shared__ Barriers barriers;
    const int lane = threadIdx.x % kWarp;
    const int warp = __shfl_sync(~0u, threadIdx.x / kWarp, 0);
    const Work<kStrips, kHigh> work(n, c_in, c_out, images);
    Copies<kParts, kStrips, kHigh> copies{ring, barriers, work, taps, input};
    if (threadIdx.x == 0) {
        for (int s = 0; s < kPixelSlots; ++s) {
            mbarrier_init(&barriers.full[s], kPixelWarps);
            mbarrier_init(&barriers.empty[s], kGroupWarps);
        }
        fence_mbarrier_init();
    }
    if (warp == kConsumerWarps && lane == 0) {
        for (int s = 0; s < kTapSlots; ++s) {
            mbarrier_init(&barriers.taps_full[s], 1);
            mbarrier_init(&barriers.taps_empty[s], kConsumerWarps);
        }
        for (int s = 0; s < kRawSlots; ++s) {
            mbarrier_init(&barriers.raw_full[s], 1);
            mbarrier_init(&barriers.raw_empty[s], kPixelWarps);
        }
        fence_mbarrier_init();
        fence_proxy_async();  // before copies that count at these barriers
        copies.start();
    }
    __syncthreads();
    if (warp == kConsumerWarps) {
        release_registers<40>();
        if (lane == 0) copies.go_on();
        __syncwarp();
        return;
    }
    if (warp > kConsumerWarps) {
        release_registers<40>();
        split(ring, barriers, work, threadIdx.x - (kConsumerWarps + 1) * kWarp);
        return;
    }
    claim_registers<216>();
    multiply(ring, barriers, work, output, warp / kGroupWarps,
             threadIdx.x % kGroupThreads);
}
