// Idea: a tile is a run of pixels through the rows of a padded map, of any length.
// From the rung before: halves again, made by a launch of their own, now of maps with
// a column of zeros after each row and a row before and after: a tap of a run is the
// run, shifted. So copies need no tensor map, and the length of a run can fit the
// number of SMs. Both warpgroups multiply with the same weights, half a run each; two
// blocks of a cluster share the input maps and send each other half of the sums.
// Requires: sm_90a; for the first launch kBlock threads a block, tap_blocks blocks for
// the weights, pixel_blocks for kBlock pieces each of all planes, and, where the output
// is to be cleared, more; kWidth = 4 where c_in is a multiple of 4 and weights are
// aligned to 16 bytes, else kWidth = 1; for the second kThreads threads, a grid of
// parts of the input maps, of runs of all images and of groups of output maps, planes
// of `length` pieces, enough for all runs with their borders, and dynamic shared memory
// for kSlots slots and, with two ranks, for sums. With more parts than ranks, which are
// twice as many at most, the output was cleared, and blocks add to it.
#include "../../common/hopper/cluster.cuh"
#include "../../common/hopper/dependent.cuh"
#include "../../common/hopper/tma.cuh"
#include "../../common/hopper/wgmma_between.cuh"
#include "taps.cuh"

constexpr int kChain = 2;   // steps that are summed in tensor cores
constexpr int kGroups = 2;  // warpgroups that multiply
constexpr int kGroupThreads = 128;
constexpr int kConsumers = kGroups * kGroupThreads;
constexpr int kConsumerWarps = kConsumers / kWarp;
// Four warps more, for the copies: registers are handed over by warpgroups.
constexpr int kThreads = kConsumers + kGroupThreads;
constexpr int kClearedEach = 8;  // floats that a thread clears

// Pieces from a pixel to the one below: a row has a zero after it, which is also the
// one before the next row.
__device__ __forceinline__ int pitch_of(int n) { return n + 1; }

// Halves of pixels, by image, step, part and eight input maps, a plane for each; of
// weights, in the order of Taps; and perhaps zeros for the output.
template <int kParts, int kBlock, int kWidth>
__global__ void __launch_bounds__(kBlock)
    convlayer_to_planes(const float* __restrict__ input,
                        const float* __restrict__ weights, Eight* __restrict__ pixels,
                        Taps<kParts>* __restrict__ taps, float* __restrict__ output,
                        int n, int c_in, int c_out, int images, int length,
                        int tap_blocks, int pixel_blocks)
{
    start_next_launch();
    if (blockIdx.x < tap_blocks) {
        make_taps<kParts, kBlock, kWidth>(weights, taps, c_in, c_out, blockIdx.x);
        return;
    }
    const int block = blockIdx.x - tap_blocks;
    const int map = n * n;
    if (block >= pixel_blocks) {
        const size_t count = static_cast<size_t>(map) * c_out * images;
        const size_t first =
            static_cast<size_t>(block - pixel_blocks) * (kBlock * kClearedEach);
#pragma unroll
        for (int j = 0; j < kClearedEach; ++j) {
            const size_t at = first + j * kBlock + threadIdx.x;
            if (at < count) output[at] = 0.0f;
        }
        return;
    }
    const int eights = eights_of(c_in);
    const int across = (length + kBlock - 1) / kBlock;
    const int piece = block % across * kBlock + threadIdx.x;
    if (piece >= length) return;
    const int eight = block / across % eights;
    const size_t image = block / across / eights;
    const int y = piece / pitch_of(n) - 1;
    const int x = piece % pitch_of(n) - 1;
    const bool inside = x >= 0 && y >= 0 && y < n;
    const float* from = input + (image * c_in + eight * 8) * map + y * n + x;
    float value[8];
#pragma unroll
    for (int m = 0; m < 8; ++m) {
        value[m] = inside && eight * 8 + m < c_in ? from[m * static_cast<size_t>(map)]
                                                  : 0.0f;
    }
    Eight made[kParts];
    make_eights<kParts>(made, value);
    const size_t step = image * (eights / kEights) + eight / kEights;
    const size_t plane = step * (kParts * kEights) + eight % kEights;
#pragma unroll
    for (int p = 0; p < kParts; ++p) {
        pixels[(plane + kEights * p) * length + piece] = made[p];
    }
}

// The halves of a step in shared memory: weights, then a run of each plane.
template <int kParts, int kWide> struct Slot {
    int run;  // pieces of a plane, with those above, below and beside
    int bytes;

    __device__ __forceinline__ explicit Slot(int n)
        : run(kGroups * kWide + 2 * pitch_of(n) + 2),
          bytes(sizeof(Taps<kParts>) + kParts * kEights * run * sizeof(Eight))
    {
    }
    __device__ __forceinline__ Taps<kParts>* taps(unsigned char* ring, int slot) const
    {
        return reinterpret_cast<Taps<kParts>*>(ring + slot * bytes);
    }
    __device__ __forceinline__ Eight* pixels(unsigned char* ring, int slot) const
    {
        return reinterpret_cast<Eight*>(taps(ring, slot) + 1);
    }
};

template <int kSlots> struct Barriers {
    Barrier full[kSlots], empty[kSlots];
};

// What the thread does that fills the ring, with `steps` steps from `first` on.
template <int kParts, int kWide, int kSlots>
__device__ __forceinline__ void fill(unsigned char* ring, Barriers<kSlots>& barriers,
                                     const Slot<kParts, kWide>& slots,
                                     const Taps<kParts>* __restrict__ taps,
                                     const Eight* __restrict__ pixels, int steps,
                                     int length)
{
    for (int step = 0; step < steps; ++step) {
        const int slot = step % kSlots;
        Barrier* full = &barriers.full[slot];
        mbarrier_wait(&barriers.empty[slot], step / kSlots % 2 ^ 1);
        mbarrier_arrive_expect(full, slots.bytes);
        Eight* to = slots.pixels(ring, slot);
#pragma unroll
        for (int plane = 0; plane < kParts * kEights; ++plane) {
            bulk_load(to + plane * slots.run, pixels, slots.run * sizeof(Eight), full);
            pixels += length;
        }
        bulk_load(slots.taps(ring, slot), taps + step, sizeof(Taps<kParts>), full);
    }
}

// Keeps the compiler from reading sums before the wait that this follows.
template <int kSums> __device__ __forceinline__ void keep_after(float (&sums)[kSums])
{
#pragma unroll
    for (int j = 0; j < kSums; ++j) asm volatile("" : "+f"(sums[j])::"memory");
}

// What a multiplying warpgroup does: the sums of its pixels and 64 output maps.
template <int kParts, int kWide, int kSlots>
__device__ __forceinline__ void multiply(float (&total)[kWide / 2], unsigned char* ring,
                                         Barriers<kSlots>& barriers,
                                         const Slot<kParts, kWide>& slots, int steps,
                                         int pitch, int group, int lane)
{
    constexpr int kSums = kWide / 2;
    float part[kSums], crossed[kSums];  // of high parts; of high and low parts
#pragma unroll
    for (int j = 0; j < kSums; ++j) total[j] = 0.0f;
    int held = -1;  // a slot that products in flight may read
    const auto release = [&]() {
        __syncwarp();
        if (held >= 0 && lane == 0) mbarrier_arrive(&barriers.empty[held]);
        held = -1;
    };
    for (int step = 0; step < steps; ++step) {
        const int slot = step % kSlots;
        // Tensor cores truncate their sums; few of them are added up there. The
        // warpgroups do so at different times.
        const bool anew = step == 0 || (step + group) % kChain == 0;
        if (anew && step > 0) {
            wgmma_wait<0>();
            keep_after(part);
            release();
#pragma unroll
            for (int j = 0; j < kSums; ++j) total[j] += part[j];
        }
        mbarrier_wait(&barriers.full[slot], step / kSlots % 2);
        const Taps<kParts>* taps = slots.taps(ring, slot);
        const Descriptor rows = describe_pieces(taps, sizeof(taps->eights[0][0]),
                                                sizeof(taps->eights[0]));
        const Descriptor pixels =
            describe_pieces(slots.pixels(ring, slot) + group * kWide,
                            slots.run * sizeof(Eight), 8 * sizeof(Eight));
        wgmma_fence();
#pragma unroll
        for (int tap = 0; tap < kTaps; ++tap) {
            const Descriptor a = rows + tap * (kParts * kOutsAtOnce);
            const Descriptor b = pixels + (tap / 3 * pitch + tap % 3);
            wgmma_f16(part, a, b, !anew || tap > 0);
            if constexpr (kParts == 2) {
                wgmma_f16(crossed, a + kOutsAtOnce, b, step > 0 || tap > 0);
                wgmma_f16(crossed, a, b + kEights * slots.run, true);
            }
            if (tap == 0) {
                // Starting all 27 takes as long as the products of the step before.
                wgmma_commit();
                wgmma_wait<1>();
                release();
            }
        }
        wgmma_commit();
        held = slot;
    }
    wgmma_wait<0>();
    keep_after(part);
    keep_after(crossed);
#pragma unroll
    for (int j = 0; j < kSums; ++j) {
        total[j] += part[j];
        if constexpr (kParts == 2) total[j] += crossed[j] / kLowScale;
    }
}

// Waits for the other threads that multiply.
__device__ __forceinline__ void sync_consumers()
{
    asm volatile("bar.sync 1, %0;" ::"n"(kConsumers) : "memory");
}

// Sums of kColumns pixels of a block, by output map. The sums of four output maps x
// eight pixels fill all banks.
template <int kColumns> struct Sums {
    static constexpr int kPitch = (kColumns + 23) / 32 * 32 + 8;
    float at[kOuts][kPitch];
};

template <int kColumns, int kWide>
__device__ __forceinline__ void keep(Sums<kColumns>& sums,
                                     const float (&total)[kWide / 2], int column,
                                     int thread)
{
    float* to = &sums.at[thread / kWarp * 16 + thread % kWarp / 4]
                        [column + thread % 4 * 2];
#pragma unroll
    for (int j = 0; j < kWide / 2; j += 2) {
        *reinterpret_cast<float2*>(to + j / 2 % 2 * 8 * Sums<kColumns>::kPitch +
                                   j / 4 * 8) = make_float2(total[j], total[j + 1]);
    }
}

// Stores sums of pixels from `first` on: a warp has every kConsumerWarps-th map.
template <int kColumns>
__device__ __forceinline__ void store(const Sums<kColumns>& sums,
                                      float* __restrict__ output, int n, int outs,
                                      int first, bool add, int warp, int lane)
{
    constexpr int kEach = (kColumns + kWarp - 1) / kWarp;
    const int map = n * n;
    int place[kEach];  // in the map, or -1 for a zero between rows
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
        const int column = k * kWarp + lane;
        const int y = (first + column) / pitch_of(n);
        const int x = (first + column) % pitch_of(n);
        place[k] = column < kColumns && x < n && y < n ? y * n + x : -1;
    }
    for (int out = warp; out < min(outs, kOuts); out += kConsumerWarps) {
        float* to = output + static_cast<size_t>(out) * map;
#pragma unroll
        for (int k = 0; k < kEach; ++k) {
            if (place[k] < 0) continue;
            const float sum = sums.at[out][k * kWarp + lane];
            if (add) {
                atomicAdd(to + place[k], sum);
            } else {
                to[place[k]] = sum;
            }
        }
    }
}

template <int kParts, int kWide, int kSlots, int kRanks>
__global__ void __cluster_dims__(kRanks, 1, 1) __launch_bounds__(kThreads, 1)
    convlayer_runs(const Taps<kParts>* __restrict__ taps,
                   const Eight* __restrict__ pixels, float* __restrict__ output, int n,
                   int c_in, int c_out, int runs, int length)
{
    static_assert(kRanks == 1 || kRanks == 2, "a block sends half of its sums");
    constexpr int kColumns = kGroups * kWide / kRanks;  // of this block's last sums
    extern __shared__ __align__(128) unsigned char ring[];
    __shared__ Barriers<kSlots> barriers;
    const int lane = threadIdx.x % kWarp;
    const int warp = __shfl_sync(~0u, threadIdx.x / kWarp, 0);
    const int all = (c_in + kDepth - 1) / kDepth;
    const int first_step = all * blockIdx.x / gridDim.x;
    const int steps = all * (blockIdx.x + 1) / gridDim.x - first_step;
    const int image = blockIdx.y / runs;
    const int first = blockIdx.y % runs * (kGroups * kWide);  // pixel of the run
    const Slot<kParts, kWide> slots(n);
    if (threadIdx.x == 0) {
        for (int s = 0; s < kSlots; ++s) {
            mbarrier_init(&barriers.full[s], 1);
            mbarrier_init(&barriers.empty[s], kConsumerWarps);
        }
        fence_mbarrier_init();
    }
    __syncthreads();
    if (kRanks > 1) cluster_arrive();  // the other block may send when both have begun
    const int rank = kRanks > 1 ? cluster_rank() : 0;
    // What the other block sends, as its threads have it.
    float4(*given)[kGroupThreads] =
        reinterpret_cast<float4(*)[kGroupThreads]>(ring + kSlots * slots.bytes);
    if (warp >= kConsumerWarps) {
        release_registers<40>();
        wait_for_launch_before();  // it makes the halves
        if (warp == kConsumerWarps && lane == 0) {
            const size_t step = static_cast<size_t>(image) * all + first_step;
            fill(ring, barriers, slots, taps + blockIdx.z * all + first_step,
                 pixels + step * (kParts * kEights) * length + first, steps, length);
        }
        __syncwarp();
        if (kRanks > 1) {
            cluster_wait();
            cluster_sync();
        }
        return;
    }
    claim_registers<232>();
    const int group = warp / (kGroupThreads / kWarp);
    const int thread = threadIdx.x % kGroupThreads;
    float total[kWide / 2];
    multiply(total, ring, barriers, slots, steps, pitch_of(n), group, lane);
    Sums<kColumns>& sums = *reinterpret_cast<Sums<kColumns>*>(ring);
    if constexpr (kRanks > 1) {
        cluster_wait();
        if (group != rank) {
            float4(*there)[kGroupThreads] = at_rank(given, 1 - rank);
#pragma unroll
            for (int j = 0; j < kWide / 2; j += 4) {
                there[j / 4][thread] =
                    make_float4(total[j], total[j + 1], total[j + 2], total[j + 3]);
            }
        }
        cluster_sync();  // all have sent, and all products have read the ring
        if (group == rank) {
#pragma unroll
            for (int j = 0; j < kWide / 2; j += 4) {
                const float4 theirs = given[j / 4][thread];
                total[j] += theirs.x;
                total[j + 1] += theirs.y;
                total[j + 2] += theirs.z;
                total[j + 3] += theirs.w;
            }
            keep<kColumns, kWide>(sums, total, 0, thread);
        }
    } else {
        sync_consumers();  // all products have read the ring
        keep<kColumns, kWide>(sums, total, group * kWide, thread);
    }
    sync_consumers();  // all sums are in shared memory
    wait_for_launch_before();  // it may clear the output
    const size_t maps = static_cast<size_t>(image) * c_out + blockIdx.z * kOuts;
    store(sums, output + maps * (n * n), n, c_out - blockIdx.z * kOuts,
          first + rank * kWide, gridDim.x > kRanks, warp, lane);
}
