// Idea: a tile is a run of pixels through the rows of a padded map, of any length.
// From the rung before: one launch again, as in in_block. Between rows there is one
// column of zeros, so a tap of a run is the run, shifted, and its length can be chosen
// for the number of SMs. The copy engine brings floats; three warps make halves of
// pixels in shared memory, and the warps that multiply make those of weights in
// registers, so that shared memory is read less. The warpgroups multiply with the same
// weights, half a run each. Two blocks of a cluster share the input maps and send each
// other half of their sums.
// Requires: sm_90a; kThreads threads, a grid of parts of the input maps, of `runs` runs
// of each image and of groups of output maps; n even, c_in a multiple of 4; a tensor map
// of the weights, boxes of kOuts x kWeightPitch floats; at most kEach pieces of a run
// for each thread that makes halves; dynamic shared memory for Slots. With as many parts
// as ranks sums is the output; else it has one for each cluster, and the last pass has
// kBlock threads a block, and quads of a map are whole.
#include "../../common/hopper/cluster.cuh"
#include "../../common/hopper/dependent.cuh"
#include "../../common/hopper/tma.cuh"
#include "../../common/hopper/wgmma_between.cuh"
#include "runs_sums.cuh"

constexpr int kEach = 5;

// What the thread does that starts all copies, for input maps from `input` on.
template <int kParts, int kWide, int kSlots>
__device__ __forceinline__ void copy(const Slots<kParts, kWide, kSlots>& slots,
                                     Barriers<kSlots>& barriers, const Run<kWide>& run,
                                     const TensorMap& weights, int first_step,
                                     const float* __restrict__ input, int maps,
                                     int steps)
{
    const int map = run.padded.n * run.padded.n;
    for (int step = 0; step < steps; ++step) {
        const int raw_slot = step % kRawSlots;
        Barrier* raw_full = &barriers.raw_full[raw_slot];
        const int here = min(kDepth, maps - step * kDepth);
        mbarrier_wait(&barriers.raw_empty[raw_slot], step / kRawSlots % 2 ^ 1);
        mbarrier_arrive_expect(raw_full, here * run.count * sizeof(float));
        for (int m = 0; m < here; ++m) {
            bulk_load(slots.raw(raw_slot) + m * run.pitch,
                      input + static_cast<size_t>(step * kDepth + m) * map + run.base,
                      run.count * sizeof(float), raw_full);
        }
        const int slot = step % kSlots;
        mbarrier_wait(&barriers.empty[slot], step / kSlots % 2 ^ 1);
        mbarrier_arrive_expect(&barriers.full[slot], sizeof(Weights));
        tma_load(slots.weights(slot), weights, (first_step + step) * (kDepth * kTaps),
                 blockIdx.z * kOuts, &barriers.full[slot]);
    }
}

// What a warp does that makes halves of pixels.
template <int kParts, int kWide, int kSlots>
__device__ __forceinline__ void split(const Slots<kParts, kWide, kSlots>& slots,
                                      Barriers<kSlots>& barriers,
                                      const Run<kWide>& run, int maps, int steps,
                                      int thread)
{
    constexpr int kThreadsThatSplit = kSplitters * kWarp;
    int place[kEach];  // of this thread's pieces in what is copied, or less than zero
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
        const int at = run.padded.place(run.first + thread + k * kThreadsThatSplit);
        place[k] = at < 0 ? -1 : at - run.base;
    }
    for (int step = 0; step < steps; ++step) {
        const int raw_slot = step % kRawSlots;
        const int slot = step % kSlots;
        const int left = maps - step * kDepth;
        const float* from = slots.raw(raw_slot);
        Eight* to = slots.pixels(slot) + thread;
        mbarrier_wait(&barriers.raw_full[raw_slot], step / kRawSlots % 2);
        mbarrier_wait(&barriers.empty[slot], step / kSlots % 2 ^ 1);
#pragma unroll
        for (int k = 0; k < kEach; ++k) {
            if (thread + k * kThreadsThatSplit >= run.pieces) break;
#pragma unroll 1  // both at a time would take more registers than there are
            for (int eight = 0; eight < kEights; ++eight) {
                float value[8];
#pragma unroll
                for (int m = 0; m < 8; ++m) {
                    const int map = eight * 8 + m;
                    value[m] = place[k] >= 0 && map < left
                                   ? from[map * run.pitch + place[k]]
                                   : 0.0f;
                }
                Eight eights[kParts];
                make_eights<kParts>(eights, value);
#pragma unroll
                for (int p = 0; p < kParts; ++p) {
                    to[(p * kEights + eight) * run.pieces + k * kThreadsThatSplit] =
                        eights[p];
                }
            }
        }
        fence_proxy_async();
        __syncwarp();
        if (thread % kWarp == 0) {
            mbarrier_arrive(&barriers.raw_empty[raw_slot]);
            mbarrier_arrive(&barriers.full[slot]);
        }
    }
}

// Keeps the compiler from using sums before the wait that this follows.
template <int kSums> __device__ __forceinline__ void arrived(float (&sums)[kSums])
{
#pragma unroll
    for (int j = 0; j < kSums; ++j) asm volatile("" : "+f"(sums[j])::"memory");
}

// The weights of a tap that a lane multiplies: of two output maps, eight apart, and of
// two pairs of input maps, eight apart.
struct Pairs {
    float2 pair[4];

    __device__ __forceinline__ void load(const float* from)
    {
#pragma unroll
        for (int q = 0; q < 4; ++q) {
            const float* here = from + q % 2 * 8 * kWeightPitch + q / 2 * 8 * kTaps;
            pair[q] = make_float2(here[0], here[4 * kTaps]);
        }
    }
    template <int kParts>
    __device__ __forceinline__ void split(unsigned (&parts)[kParts][4]) const
    {
#pragma unroll
        for (int q = 0; q < 4; ++q) {
            unsigned both[kParts];
            split_pair<kParts>(both, pair[q].x, pair[q].y);
#pragma unroll
            for (int p = 0; p < kParts; ++p) parts[p][q] = both[p];
        }
    }
};

// What a multiplying warpgroup does: the sums of its pixels and 64 output maps.
template <int kParts, int kWide, int kSlots>
__device__ __forceinline__ void multiply(float (&total)[kWide / 2],
                                         const Slots<kParts, kWide, kSlots>& slots,
                                         Barriers<kSlots>& barriers, int pitch,
                                         int steps, int group, int thread)
{
    constexpr int kSums = kWide / 2;
    float part[kSums], crossed[kSums];  // of high parts; of high and low parts
#pragma unroll
    for (int j = 0; j < kSums; ++j) total[j] = 0.0f;
    const int lane = thread % kWarp;
    const int row = (thread / kWarp * 16 + lane / 4) * kWeightPitch + lane % 4 * kTaps;
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
            arrived(part);
            release();
#pragma unroll
            for (int j = 0; j < kSums; ++j) total[j] += part[j];
        }
        mbarrier_wait(&barriers.full[slot], step / kSlots % 2);
        const float* mine = slots.weights(slot)->at + row;
        const Descriptor pixels =
            describe_pieces(slots.pixels(slot) + group * kWide,
                            slots.pieces * sizeof(Eight), 8 * sizeof(Eight));
        // The halves of three taps, because products of two may be in flight.
        unsigned weights[3][kParts][4];
        Pairs pairs;
        pairs.load(mine);
        pairs.split<kParts>(weights[0]);
#pragma unroll
        for (int tap = 0; tap < kTaps; ++tap) {
            const auto& here = weights[tap % 3];
            const Descriptor b = pixels + (tap / 3 * pitch + tap % 3);
            if (tap + 1 < kTaps) pairs.load(mine + tap + 1);
            wgmma_fence();
            wgmma_f16(part, here[0], b, !anew || tap > 0);
            if constexpr (kParts == 2) {
                wgmma_f16(crossed, here[1], b, step > 0 || tap > 0);
                wgmma_f16(crossed, here[0], b + kEights * slots.pieces, true);
            }
            wgmma_commit();
            if (tap == 0) {
                wgmma_wait<1>();  // the products of the step before are made
                release();
            }
            if (tap + 1 < kTaps) pairs.split<kParts>(weights[(tap + 1) % 3]);
            if (tap > 0 && tap + 1 < kTaps) wgmma_wait<1>();
        }
        held = slot;
    }
    wgmma_wait<0>();
    arrived(part);
    arrived(crossed);
#pragma unroll
    for (int j = 0; j < kSums; ++j) {
        total[j] += part[j];
        if constexpr (kParts == 2) total[j] += crossed[j] / kLowScale;
    }
}

template <int kParts, int kWide, int kSlots, int kRanks>
__global__ void __cluster_dims__(kRanks, 1, 1) __launch_bounds__(kThreads, 1)
    convlayer_runs(const __grid_constant__ TensorMap weights,
                   const float* __restrict__ input, float* __restrict__ sums, int n,
                   int c_in, int c_out, int images, int runs)
{
    static_assert(kRanks == 1 || kRanks == 2, "a block sends half of its sums");
    constexpr int kColumns = kGroups * kWide / kRanks;  // of this block's last sums
    extern __shared__ __align__(128) unsigned char shared_bytes[];
    __shared__ Barriers<kSlots> barriers;
    start_next_launch();
    const int lane = threadIdx.x % kWarp;
    const int warp = __shfl_sync(~0u, threadIdx.x / kWarp, 0);
    const int all = (c_in + kDepth - 1) / kDepth;
    const int first_step = all * blockIdx.x / gridDim.x;
    const int steps = all * (blockIdx.x + 1) / gridDim.x - first_step;
    const size_t image = blockIdx.y / runs;
    const size_t map = static_cast<size_t>(n) * n;
    const Run<kWide> run(n, blockIdx.y % runs * (kGroups * kWide));
    const Slots<kParts, kWide, kSlots> slots{shared_bytes, run.pieces, run.pitch};
    if (threadIdx.x == 0) {
        for (int s = 0; s < kSlots; ++s) {
            mbarrier_init(&barriers.full[s], 1 + kSplitters);
            mbarrier_init(&barriers.empty[s], kConsumerWarps);
        }
        for (int s = 0; s < kRawSlots; ++s) {
            mbarrier_init(&barriers.raw_full[s], 1);
            mbarrier_init(&barriers.raw_empty[s], kSplitters);
        }
        fence_mbarrier_init();
    }
    __syncthreads();
    if (warp >= kConsumerWarps) {
        release_registers<56>();
        const int maps = min(c_in - first_step * kDepth, steps * kDepth);
        if (warp > kConsumerWarps) {
            split(slots, barriers, run, maps, steps, threadIdx.x - kConsumers - kWarp);
        } else if (lane == 0) {
            copy(slots, barriers, run, weights, first_step,
                 input + (image * c_in + first_step * kDepth) * map, maps, steps);
        }
        __syncwarp();
        if (kRanks > 1) {
            cluster_sync();
            cluster_sync();
        }
        return;
    }
    claim_registers<224>();
    const int group = warp / (kGroupThreads / kWarp);
    const int thread = threadIdx.x % kGroupThreads;
    const int rank = kRanks > 1 ? cluster_rank() : 0;
    float total[kWide / 2];
    multiply(total, slots, barriers, run.padded.pitch(), steps, group, thread);
    // Sums replace the ring.
    Sums<kColumns>& mine = *reinterpret_cast<Sums<kColumns>*>(shared_bytes);
    if constexpr (kRanks > 1) {
        // What the other block sends, as its threads have it.
        using Given = float4[kWide / 8][kGroupThreads];
        static_assert(sizeof(Sums<kColumns>) % 16 == 0, "quads are aligned");
        static_assert(sizeof(Sums<kColumns>) + sizeof(Given) <=
                          kSlots * sizeof(Weights), "the ring has room");
        Given& given = *reinterpret_cast<Given*>(&mine + 1);
        cluster_sync();  // all products have read the rings
        if (group != rank) {
            float4(*there)[kGroupThreads] = at_rank(&given[0], 1 - rank);
#pragma unroll
            for (int j = 0; j < kWide / 2; j += 4) {
                there[j / 4][thread] =
                    make_float4(total[j], total[j + 1], total[j + 2], total[j + 3]);
            }
        }
        cluster_sync();  // all have sent
        if (group == rank) {
#pragma unroll
            for (int j = 0; j < kWide / 2; j += 4) {
                const float4 theirs = given[j / 4][thread];
                total[j] += theirs.x;
                total[j + 1] += theirs.y;
                total[j + 2] += theirs.z;
                total[j + 3] += theirs.w;
            }
            keep(mine, total, 0, thread);
        }
    } else {
        static_assert(sizeof(Sums<kColumns>) <= kSlots * sizeof(Weights),
                      "the ring has room");
        sync_consumers();  // all products have read the ring
        keep(mine, total, group * kWide, thread);
    }
    sync_consumers();  // all sums are in shared memory
    const size_t part = blockIdx.x / kRanks;
    const size_t maps = (part * images + image) * c_out + blockIdx.z * kOuts;
    store(mine, sums + maps * map, run.padded, c_out - blockIdx.z * kOuts,
          run.first + rank * kWide, warp, lane);
}
