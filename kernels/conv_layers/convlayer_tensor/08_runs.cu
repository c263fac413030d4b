// Idea: weights stay floats until a warp multiplies; a tile is a run of any length.
// From the rung before: two launches, as in halves, but the first makes halves of
// pixels alone, of maps with a column of zeros between rows: a tap of a run is the run,
// shifted, and its length can be chosen for the number of SMs. The second copies
// weights as they are, before the first has ended, and the warps that multiply make
// halves of them in registers, some after each product that they start. Both
// warpgroups multiply with the same weights, half a run each. Two blocks of a cluster
// share the input maps and send each other half of their sums.
// Requires: sm_90a; for the first launch kBlock threads a block, plane_blocks blocks
// for kBlock pieces of a plane each, and more to clear the output; for the second
// kThreads threads, a grid of parts of the input maps, of `runs` runs of each image and
// of groups of output maps, c_in a multiple of 4, a tensor map of the weights, boxes of
// kOuts x kWeightPitch floats, planes of `length` pieces, enough for all runs, dynamic
// shared memory for a Ring and, with two ranks, for the sums of a warpgroup. With more
// parts than ranks, twice as many at most, the output was cleared: two blocks add to
// each sum, and either order gives the same.
#include "../../common/hopper/cluster.cuh"
#include "../../common/hopper/wgmma_other_widths.cuh"
#include "runs_sums.cuh"

constexpr int kChain = 2;  // steps that are summed in tensor cores

#include "pairs.cuh"

// Computes a warpgroup's sums, of its pieces and 64 output maps.
template <int kParts, int kWide, int kSlots>
__device__ __forceinline__ void multiply(float (&total)[kWide / 2],
                                         const Ring<kParts, kWide, kSlots>& ring,
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
    // The halves of three taps, because products of two may be in flight.
    unsigned weights[3][kParts][4];
    for (int step = 0; step < steps; ++step) {
        const int slot = step % kSlots;
        mbarrier_wait(&barriers.full[slot], step / kSlots % 2);
        const float* mine = ring.weights(slot)->at + row;
        const Descriptor run =
            describe_pieces(ring.run(slot) + group * kWide,
                            ring.pieces * sizeof(Eight), 8 * sizeof(Eight));
        Pairs pairs[2];
        pairs[0].load(mine);
        pairs[1].load(mine + 1);
        pairs[0].split<0, 4>(weights[0]);
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
#pragma unroll
        for (int tap = 0; tap < kTaps; ++tap) {
            const auto& here = weights[tap % 3];
            auto& next = weights[(tap + 1) % 3];
            const Pairs& ahead = pairs[(tap + 1) % 2];
            const Descriptor b = run + (tap / 3 * pitch + tap % 3);
            wgmma_fence();
            // A warp that starts a product waits until the tensor cores take it. Halves
            // are made between, lest both warpgroups make them at the same time, of
            // weights that were loaded a tap ago.
            wgmma_f16(part, here[0], b, !anew || tap > 0);
            if (tap + 1 < kTaps) ahead.split<0, kParts == 2 ? 2 : 4>(next);
            if (tap + 2 < kTaps) pairs[tap % 2].load(mine + tap + 2);
            if constexpr (kParts == 2) {
                wgmma_f16(crossed, here[1], b, step > 0 || tap > 0);
                if (tap + 1 < kTaps) ahead.split<2, 4>(next);
                wgmma_f16(crossed, here[0], b + kEights * ring.pieces, true);
            }
            wgmma_commit();
            wgmma_wait<1>();  // the products of the tap before are made
            if (tap == 0) release();
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
                   const Eight* __restrict__ planes, float* __restrict__ output, int n,
                   int c_in, int c_out, int runs, int length)
{
    static_assert(kRanks == 1 || kRanks == 2, "a block sends half of its sums");
    constexpr int kColumns = kGroups * kWide / kRanks;  // of this block's last sums
    static_assert(sizeof(Sums<kColumns>) <= kSlots * sizeof(Weights),
                  "the ring has room");
    extern __shared__ __align__(128) unsigned char shared_bytes[];
    __shared__ Barriers<kSlots> barriers;
    const int lane = threadIdx.x % kWarp;
    const int warp = __shfl_sync(~0u, threadIdx.x / kWarp, 0);
    const int all = (c_in + kDepth - 1) / kDepth;
    const int first_step = all * blockIdx.x / gridDim.x;
    const int steps = all * (blockIdx.x + 1) / gridDim.x - first_step;
    const size_t image = blockIdx.y / runs;
    const int first = blockIdx.y % runs * (kGroups * kWide);  // piece of the run
    const Plane plane{n};
    const Ring<kParts, kWide, kSlots> ring(shared_bytes, plane);
    if (threadIdx.x == 0) {
        for (int s = 0; s < kSlots; ++s) {
            mbarrier_init(&barriers.full[s], 1);
            mbarrier_init(&barriers.empty[s], kConsumerWarps);
        }
        fence_mbarrier_init();
    }
    __syncthreads();
    if (kRanks > 1) cluster_arrive();  // the other block may send when both have begun
    if (warp >= kConsumerWarps) {
        release_registers<40>();
        if (warp == kConsumerWarps && lane == 0) {
            const size_t before = (image * all + first_step) * (kParts * kEights);
            fill(ring, barriers, weights, first_step, planes + before * length + first,
                 length, steps);
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
    const int rank = kRanks > 1 ? cluster_rank() : 0;
    float total[kWide / 2];
    multiply(total, ring, barriers, plane.pitch(), steps, group, thread);
    // Sums replace the ring.
    Sums<kColumns>& sums = *reinterpret_cast<Sums<kColumns>*>(shared_bytes);
    if constexpr (kRanks > 1) {
        // The sums that the other block sends, in the order of its threads.
        float4(*given)[kGroupThreads] =
            reinterpret_cast<float4(*)[kGroupThreads]>(ring.end());
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
            keep(sums, total, 0, thread);
        }
    } else {
        sync_consumers();  // all products have read the ring
        keep(sums, total, group * kWide, thread);
    }
    sync_consumers();  // all sums are in shared memory
    const size_t maps = image * c_out + blockIdx.z * kOuts;
    store(sums, output + maps * n * n, plane, c_out - blockIdx.z * kOuts,
          first + rank * kWide, gridDim.x > kRanks, warp, lane);
}
