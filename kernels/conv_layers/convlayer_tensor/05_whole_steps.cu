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

// What a block does: `own` tiles, every gridDim.x-th. Two of them at a time go through
// all steps, or a last one; an item is a step of a tile.
template <int kStrips, int kHigh> struct Work {
    int n, c_in, c_out, steps, across, down, own;

    __device__ __forceinline__ Work(int n, int c_in, int c_out, int images)
        : n(n), c_in(c_in), c_out(c_out)
    {
        steps = (c_in + kDepth - 1) / kDepth;
        across = (n + kStrips * kWide - 1) / (kStrips * kWide);
        down = (n + kHigh - 1) / kHigh;
        const int left = across * down * images - static_cast<int>(blockIdx.x);
        own = (left + static_cast<int>(gridDim.x) - 1) / static_cast<int>(gridDim.x);
    }
    __device__ __forceinline__ bool resident() const { return steps <= kTapSlots; }
    __device__ __forceinline__ int items() const { return own * steps; }
    // Steps of two tiles, or of a last one: the weights are loaded once for each.
    __device__ __forceinline__ int sets() const { return (own + 1) / 2 * steps; }
    // Items from 0 on, as a tile of the block and a step.
    __device__ __forceinline__ int set(int item) const
    {
        const int two = 2 * steps;
        const int first = item / two * two;
        const int beside = first / two * 2 + 1 < own ? 2 : 1;
        return first / 2 + (item - first) / beside;
    }
    __device__ __forceinline__ int tile(int item) const
    {
        const int pair = item / (2 * steps) * 2;
        const int mine = pair + (pair + 1 < own ? item % 2 : 0);
        return blockIdx.x + mine * gridDim.x;
    }
    __device__ __forceinline__ int step(int item) const { return set(item) % steps; }
    __device__ __forceinline__ int tap_slot(int set) const
    {
        return resident() ? set % steps : set % kTapSlots;
    }
    __device__ __forceinline__ int tap_parity(int set) const
    {
        return resident() ? 0 : set / kTapSlots % 2;
    }
    __device__ __forceinline__ int x(int tile) const
    {
        return tile % across * (kStrips * kWide);
    }
    __device__ __forceinline__ int y(int tile) const
    {
        return tile / across % down * kHigh;
    }
    __device__ __forceinline__ int image(int tile) const
    {
        return tile / (across * down);
    }
};

template <int kParts, int kBlock, int kWidth>
__global__ void __launch_bounds__(kBlock)
    convlayer_to_taps(const float* __restrict__ weights,
                      Taps<kParts>* __restrict__ taps, int c_in, int c_out)
{
    start_next_launch();
    make_taps<kParts, kBlock, kWidth>(weights, taps, c_in, c_out, blockIdx.x);
}

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

// Waits for the other threads that multiply.
__device__ __forceinline__ void sync_consumers()
{
    asm volatile("bar.sync 1, %0;" ::"n"(kConsumers) : "memory");
}

template <int kParts, int kStrips, int kHigh>
__global__ void __launch_bounds__(kThreads, 1)
    convlayer_whole_steps(const Taps<kParts>* __restrict__ taps,
                    const __grid_constant__ TensorMap input,
                    float* __restrict__ output, int n, int c_in, int c_out, int images)
{
    using Shared = Ring<kParts, kStrips, kHigh>;
    constexpr int kSums = kStrips * kWide * kHigh / 2;  // of a thread
    extern __shared__ __align__(128) unsigned char shared_bytes[];
    Shared& ring = *reinterpret_cast<Shared*>(shared_bytes);
    __shared__ Barriers barriers;
    const int lane = threadIdx.x % kWarp;
    const int warp = __shfl_sync(~0u, threadIdx.x / kWarp, 0);
    const Work<kStrips, kHigh> work(n, c_in, c_out, images);
    if (threadIdx.x == 0) {
        for (int s = 0; s < kTapSlots; ++s) {
            mbarrier_init(&barriers.taps_full[s], 1);
            mbarrier_init(&barriers.taps_empty[s], kConsumerWarps);
        }
        for (int s = 0; s < kRawSlots; ++s) {
            mbarrier_init(&barriers.raw_full[s], 1);
            mbarrier_init(&barriers.raw_empty[s], kPixelWarps);
        }
        for (int s = 0; s < kPixelSlots; ++s) {
            mbarrier_init(&barriers.full[s], kPixelWarps);
            mbarrier_init(&barriers.empty[s], kGroupWarps);
        }
        fence_mbarrier_init();
    }
    __syncthreads();
    if (warp == kConsumerWarps) {
        release_registers<40>();
        if (lane == 0) copy(ring, barriers, work, taps, input);
        __syncwarp();
        return;
    }
    if (warp > kConsumerWarps) {
        release_registers<40>();
        split(ring, barriers, work,
                      threadIdx.x - (kConsumerWarps + 1) * kWarp);
        return;
    }
    claim_registers<216>();
    const int group = warp / kGroupWarps;
    const int thread = threadIdx.x % kGroupThreads;
    const size_t map = static_cast<size_t>(n) * n;
    const int out = blockIdx.y * kOuts + thread / kWarp * 16 + lane / 4;
    int item = group;
    int set = 0;
    for (int k = 0; k < work.own; k += kGroups) {
        const bool both = k + 1 < work.own;
        float total[kSums], part[kSums], crossed[kSums];
#pragma unroll
        for (int j = 0; j < kSums; ++j) {
            total[j] = 0.0f;
            part[j] = 0.0f;
            crossed[j] = 0.0f;
        }
        int used = 0;
        int held = -1, held_taps = -1;  // slots that products in flight may read
        const auto release_taps = [&](int slot) {
            if (!work.resident()) mbarrier_arrive(&barriers.taps_empty[slot]);
        };
        const auto release = [&]() {
            __syncwarp();
            if (held >= 0 && lane == 0) {
                mbarrier_arrive(&barriers.empty[held]);
                release_taps(held_taps);
            }
            held = -1;
        };
        for (int step = 0; step < work.steps; ++step, ++set) {
            const int tap_slot = work.tap_slot(set);
            if (!both && step % kGroups != group) {
                // Waits, lest it arrives twice in a phase.
                mbarrier_wait(&barriers.taps_full[tap_slot], work.tap_parity(set));
                if (lane == 0) release_taps(tap_slot);
                continue;
            }
            const int slot = item % kPixelSlots;
            mbarrier_wait(&barriers.taps_full[tap_slot], work.tap_parity(set));
            mbarrier_wait(&barriers.full[slot], item / kPixelSlots % 2);
            item += kGroups;
            // Tensor cores truncate their sums; few of them are added up there. The
            // warpgroups do so at different times.
            const bool anew = used > 0 && (used + group) % kChain == 0;
            if (anew) {
                wgmma_wait<0>();
                release();
#pragma unroll
                for (int j = 0; j < kSums; ++j) total[j] += part[j];
            }
            const Taps<kParts>& weights = ring.taps[tap_slot];
            const Descriptor rows =
                describe_pieces(&weights, sizeof(weights.eights[0][0]),
                                sizeof(weights.eights[0]));
            const Descriptor pixels =
                describe_pieces(ring.pixels[slot], Shared::kPixels * sizeof(Eight),
                                kHaloWide * sizeof(Eight));
            wgmma_fence();
#pragma unroll
            for (int tap = 0; tap < kTaps; ++tap) {
                const Descriptor a = rows + tap * (kParts * kOutsAtOnce);
                const Descriptor b = pixels + tap / 3 * Shared::kRow + tap % 3;
                wgmma_f16(part, a, b, !anew || tap > 0);
                if constexpr (kParts == 2) {
                    wgmma_f16(crossed, a + kOutsAtOnce, b, true);
                    wgmma_f16(crossed, a, b + kEights * Shared::kPixels, true);
                }
            }
            wgmma_commit();
            ++used;
            wgmma_wait<1>();  // the products of the step before are made
            release();
            held = slot;
            held_taps = tap_slot;
        }
        wgmma_wait<0>();
        release();
#pragma unroll
        for (int j = 0; j < kSums; ++j) {
            total[j] = (total[j] + part[j]) + crossed[j] / kLowScale;
        }
        const int tile = blockIdx.x + (k + (both ? group : 0)) * gridDim.x;
        const int x = work.x(tile) + lane % 4 * 2;
        const int y = work.y(tile);
        float* to = output +
                    (static_cast<size_t>(work.image(tile)) * c_out + out) * map + x;
        const auto store = [&](int j, float first, float second) {
            const int eight = j / 4;
            const int right = eight % kStrips * kWide;
            const int row = y + eight / kStrips;
            if (out + j / 2 % 2 * 8 < c_out && row < n && x + right < n) {
                float* here = to + j / 2 % 2 * 8 * map + row * n + right;
                *reinterpret_cast<float2*>(here) = make_float2(first, second);
            }
        };
        if (both) {
#pragma unroll
            for (int j = 0; j < kSums; j += 2) store(j, total[j], total[j + 1]);
            continue;
        }
        // Each warpgroup gives the other half of its sums, in place of the ring.
        using Given = float2[kSums / 4][kGroupThreads];
        Given* given = reinterpret_cast<Given*>(shared_bytes);
        static_assert(kGroups * sizeof(Given) <= sizeof(Shared), "the ring has room");
        sync_consumers();  // all products have read the ring
#pragma unroll
        for (int j = 0; j < kSums / 2; j += 2) {
            const int other = j + kSums / 2;
            given[group][j / 2][thread] =
                group == 0 ? make_float2(total[other], total[other + 1])
                           : make_float2(total[j], total[j + 1]);
        }
        sync_consumers();  // all sums are stored
#pragma unroll
        for (int j = 0; j < kSums / 2; j += 2) {
            const int other = j + kSums / 2;
            const float2 theirs = given[1 - group][j / 2][thread];
            if (group == 0) {
                store(j, total[j] + theirs.x, total[j + 1] + theirs.y);
            } else {
                store(other, total[other] + theirs.x, total[other + 1] + theirs.y);
            }
        }
    }
}
