// Idea: a first launch makes all halves; wgmma reads both factors from shared memory.
// From the rung before: the first launch writes pixels and weights as halves, in the
// order in which products read them, eight input maps side by side. One thread starts
// all copies, and two warpgroups start the products of a whole step at a time.
// Requires: sm_90a. First launch: blocks of kBlock threads, tap_blocks of them for the
// weights and more for all pixels, eights of input maps and images; kWidth = 4 if c_in
// is a multiple of 4 and weights are aligned to 16 bytes, else kWidth = 1. Second
// launch: blocks of kThreads threads; a grid of (parts of the input maps, tiles of
// pixels, groups of output maps); a tensor map of the halves, boxes of 2 kParts x
// (kHigh + 2) x 8 kHaloWide; dynamic shared memory for a Ring; kPair = 2 if n is even.
// The parts are the kRanks blocks of a cluster, which then have at most two tiles; if
// kRanks is 1, a last launch adds up the parts. `sums` is the output if there is only
// one part, or if there are several ranks.
#include "../../common/hopper/cluster.cuh"
#include "../../common/hopper/dependent.cuh"
#include "../../common/hopper/tma.cuh"
#include "../../common/hopper/wgmma.cuh"
#include "ring.cuh"

// Makes halves of pixels, a plane for each image, step, part and eight input maps, and
// halves of weights in the layout of the ring.
template <int kParts, int kBlock, int kWidth>
__global__ void __launch_bounds__(kBlock)
    convlayer_to_halves(const float* __restrict__ input,
                        const float* __restrict__ weights, Eight* __restrict__ pixels,
                        Taps<kParts>* __restrict__ taps, int n, int c_in, int c_out,
                        int tap_blocks)
{
    start_next_launch();
    if (blockIdx.x < tap_blocks) {
        make_taps<kParts, kBlock, kWidth>(weights, taps, c_in, c_out, blockIdx.x);
        return;
    }
    const int eights = eights_of(c_in);
    const int map = n * n;
    const int across = (map + kBlock - 1) / kBlock;
    const int block = blockIdx.x - tap_blocks;
    const int pixel = block % across * kBlock + threadIdx.x;
    if (pixel >= map) return;
    const int eight = block / across % eights;
    const size_t image = block / across / eights;
    const float* from = input + (image * c_in + eight * 8) * map + pixel;
    float value[8];
#pragma unroll
    for (int m = 0; m < 8; ++m) {
        value[m] = eight * 8 + m < c_in ? from[m * static_cast<size_t>(map)] : 0.0f;
    }
    Eight made[kParts];
    make_eights<kParts>(made, value);
    const size_t step = image * (eights / kEights) + eight / kEights;
    const size_t plane = step * (kParts * kEights) + eight % kEights;
#pragma unroll
    for (int p = 0; p < kParts; ++p) {
        pixels[(plane + kEights * p) * map + pixel] = made[p];
    }
}

// Starts all copies to the ring; one thread calls it.
template <int kParts, int kHigh>
__device__ __forceinline__ void fill(Ring<kParts, kHigh>& ring, Barriers& barriers,
                                     const Work<kHigh>& work,
                                     const Taps<kParts>* __restrict__ taps,
                                     const TensorMap& pixels)
{
    int item = 0;
    for (int set = 0; set < work.sets; ++set) {
        for (int i = 0; i < work.items(set); ++i, ++item) {
            const int slot = item % kPixelSlots;
            Barrier* full = &barriers.full[slot];
            mbarrier_wait(&barriers.empty[slot], item / kPixelSlots % 2 ^ 1);
            const int steps = work.taps(set, i);
            int tiles = 0;
            for (int group = 0; group < kGroups; ++group) {
                tiles += work.has(set, i, group);
            }
            mbarrier_arrive_expect(full, steps * sizeof(ring.taps[0]) +
                                             tiles * sizeof(ring.pixels[0][0]));
            for (int j = 0; j < steps; ++j) {
                const int step = work.step(set, i, 0) + j;
                bulk_load(&ring.taps[work.tap_slot(item, step)],
                          taps + blockIdx.z * work.all + work.first + step,
                          sizeof(ring.taps[0]), full);
            }
            for (int group = 0; group < kGroups; ++group) {
                if (!work.has(set, i, group)) continue;
                const int tile = work.tile(set, group);
                const int in_image = tile % (work.across * work.down);
                const int step = tile / (work.across * work.down) * work.all +
                                 work.first + work.step(set, i, group);
                tma_load(ring.pixels[slot][group], pixels,
                         (in_image % work.across * kWide - 1) * 8,
                         in_image / work.across * kHigh - 1, step * (kParts * kEights),
                         full);
            }
        }
    }
}

// Stores columns x and x + 1 of a row of n elements; x is even.
template <int kPair>
__device__ __forceinline__ void store_pair(float* to, const float2& pair, int x, int n)
{
    if constexpr (kPair == 2) {
        if (x < n) *reinterpret_cast<float2*>(to) = pair;
    } else {
        if (x < n) to[0] = pair.x;
        if (x + 1 < n) to[1] = pair.y;
    }
}

// A barrier for all threads that multiply.
__device__ __forceinline__ void sync_consumers()
{
    asm volatile("bar.sync 1, %0;" ::"n"(kConsumers) : "memory");
}

// Computes a warpgroup's sums of a set, for all its pixels and output maps.
template <int kParts, int kHigh, int kSums>
__device__ __forceinline__ void multiply(float (&total)[kSums],
                                         Ring<kParts, kHigh>& ring, Barriers& barriers,
                                         const Work<kHigh>& work, int set, int& item,
                                         int group, int lane)
{
    constexpr int kPixels = Ring<kParts, kHigh>::kPixels;
    float part[kSums], crossed[kSums];  // high x high; high x low and low x high
#pragma unroll
    for (int j = 0; j < kSums; ++j) {
        total[j] = 0.0f;
        part[j] = 0.0f;
        crossed[j] = 0.0f;
    }
    int used = 0;
    int held = -1;  // a slot that products in flight may read
    const auto release = [&]() {
        __syncwarp();
        if (held >= 0 && lane == 0) mbarrier_arrive(&barriers.empty[held]);
        held = -1;
    };
    for (int i = 0; i < work.items(set); ++i, ++item) {
        const int step = work.step(set, i, group);
        const int slot = item % kPixelSlots;
        mbarrier_wait(&barriers.full[slot], item / kPixelSlots % 2);
        if (!work.has(set, i, group)) {
            wgmma_wait<0>();
            release();
            held = slot;
            continue;
        }
        // Tensor cores truncate sums, so every kChain steps their sums are added to
        // float32 totals. The two warpgroups do so in different steps.
        const bool anew = used > 0 && (used + group) % kChain == 0;
        if (anew) {
            wgmma_wait<0>();
            release();
#pragma unroll
            for (int j = 0; j < kSums; ++j) total[j] += part[j];
        }
        const Taps<kParts>& weights = ring.taps[work.tap_slot(item, step)];
        const Descriptor taps =
            describe_pieces(&weights, sizeof(weights.eights[0][0]),
                            sizeof(weights.eights[0]));
        const Descriptor pixels =
            describe_pieces(ring.pixels[slot][group], kPixels * sizeof(Eight),
                            kHaloWide * sizeof(Eight));
        wgmma_fence();
#pragma unroll
        for (int tap = 0; tap < kTaps; ++tap) {
            const Descriptor a = taps + tap * (kParts * kOutsAtOnce);
            const Descriptor b = pixels + tap / 3 * kHaloWide + tap % 3;
            wgmma_f16(part, a, b, !anew || tap > 0);
            if constexpr (kParts == 2) {
                wgmma_f16(crossed, a + kOutsAtOnce, b, true);
                wgmma_f16(crossed, a, b + kEights * kPixels, true);
            }
        }
        wgmma_commit();
        ++used;
        wgmma_wait<1>();  // the previous step's products are done
        release();
        held = slot;
    }
    wgmma_wait<0>();
    release();
#pragma unroll
    for (int j = 0; j < kSums; ++j) {
        total[j] = (total[j] + part[j]) + crossed[j] / kLowScale;
    }
}

template <int kParts, int kHigh, int kPair, int kRanks>
__global__ void __cluster_dims__(kRanks, 1, 1) __launch_bounds__(kThreads, 1)
    convlayer_of_halves(const Taps<kParts>* __restrict__ taps,
                        const __grid_constant__ TensorMap pixels,
                        float* __restrict__ sums, int n, int c_in, int c_out,
                        int images)
{
    constexpr int kSums = kWide * kHigh / 2;  // of a thread
    extern __shared__ __align__(128) unsigned char shared_bytes[];
    Ring<kParts, kHigh>& ring = *reinterpret_cast<Ring<kParts, kHigh>*>(shared_bytes);
    // Sums that warpgroups or blocks of a cluster exchange replace the ring.
    using Given = float2[kSums / 2][kGroupThreads];
    Given* given = reinterpret_cast<Given*>(shared_bytes);
    static_assert(kGroups * sizeof(Given) <= sizeof(ring), "the ring has room");
    __shared__ Barriers barriers;
    start_next_launch();
    const int lane = threadIdx.x % kWarp;
    const int warp = __shfl_sync(~0u, threadIdx.x / kWarp, 0);
    const Work<kHigh> work(n, c_in, c_out, images);
    const size_t map = work.map();
    if (kRanks == 1) sums += blockIdx.x * (map * c_out * images);
    if (threadIdx.x == 0) {
        for (int s = 0; s < kPixelSlots; ++s) {
            mbarrier_init(&barriers.full[s], 1);
            mbarrier_init(&barriers.empty[s], kConsumers / kWarp);
        }
        fence_mbarrier_init();
    }
    __syncthreads();
    if (warp >= kConsumers / kWarp) {
        release_registers<40>();
        wait_for_launch_before();  // which makes the halves
        if (warp == kConsumers / kWarp && lane == 0) {
            fill<kParts>(ring, barriers, work, taps, pixels);
        }
        __syncwarp();
    } else {
        claim_registers<232>();
        const int group = warp / (kGroupThreads / kWarp);
        const int thread = threadIdx.x % kGroupThreads;
        int item = 0;
        for (int set = 0; set < work.sets; ++set) {
            float total[kSums];
            multiply<kParts>(total, ring, barriers, work, set, item, group, lane);
            if (kRanks > 1 || work.shared(set)) {
                sync_consumers();  // all products have read the ring
#pragma unroll
                for (int j = 0; j < kSums; j += 2) {
                    given[group][j / 2][thread] = make_float2(total[j], total[j + 1]);
                }
            } else if (set < work.pairs || group == 0) {
                const Place<kHigh> mine(work, sums, work.tile(set, group), thread);
                float* to = mine.to;
#pragma unroll
                for (int j = 0; j < kSums; j += 4, to += n) {
                    if (mine.y + j / 4 >= n) continue;
#pragma unroll
                    for (int r = 0; r < 2; ++r) {
                        const float2 pair =
                            make_float2(total[j + 2 * r], total[j + 2 * r + 1]);
                        if (mine.out + r * 8 < c_out) {
                            store_pair<kPair>(to + r * 8 * map, pair, mine.x, n);
                        }
                    }
                }
            }
        }
    }
    if (kRanks == 1 && !(work.odd && work.resident)) return;
    // All sums are stored before they are added up.
    if (kRanks > 1) {
        cluster_sync();
    } else {
        __syncthreads();
    }
    const int rank = kRanks > 1 ? cluster_rank() : 0;
    for (int group = 0; group < (work.odd ? 1 : kGroups); ++group) {
        const int tile = work.tile(work.sets - 1, group);
        for (int i = rank * kThreads + threadIdx.x; i < kSums / 2 * kGroupThreads;
             i += kRanks * kThreads) {
            const int pair = i / kGroupThreads;
            const int thread = i % kGroupThreads;
            float2 sum = {};
            const auto add = [&](const float2& value) {
                sum.x += value.x;
                sum.y += value.y;
            };
#pragma unroll
            for (int q = 0; q < kRanks; ++q) {
                const Given* there = kRanks > 1 ? at_rank(given, q) : given;
                add(there[group][pair][thread]);
                if (work.odd) add(there[1][pair][thread]);
            }
            const Place<kHigh> mine(work, sums, tile, thread);
            const int r = pair % 2;
            if (mine.out + r * 8 < c_out && mine.y + pair / 2 < n) {
                store_pair<kPair>(mine.to + r * 8 * map + pair / 2 * n, sum, mine.x, n);
            }
        }
    }
    if (kRanks > 1) cluster_sync();  // no block ends before its sums have been read
}

// output[i] = parts[0][i] + parts[1][i] + ..., kWidth neighbouring elements a thread.
template <int kBlock, int kWidth>
__global__ void __launch_bounds__(kBlock)
    convlayer_add_late(const float* __restrict__ parts, float* __restrict__ output,
                       size_t count, int number)
{
    wait_for_launch_before();
    const size_t at =
        (static_cast<size_t>(blockIdx.x) * kBlock + threadIdx.x) * kWidth;
    if (at >= count) return;
    float sum[kWidth] = {};
#pragma unroll 8
    for (int part = 0; part < number; ++part) {
        const float* from = parts + part * count + at;
        if constexpr (kWidth == 4) {
            const float4 quad = *reinterpret_cast<const float4*>(from);
            sum[0] += quad.x;
            sum[1] += quad.y;
            sum[2] += quad.z;
            sum[3] += quad.w;
        } else {
            sum[0] += *from;
        }
    }
    if constexpr (kWidth == 4) {
        *reinterpret_cast<float4*>(output + at) = {sum[0], sum[1], sum[2], sum[3]};
    } else {
        output[at] = sum[0];
    }
}
