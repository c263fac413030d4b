// Two consumers that take turns: while one multiplies a tile of 128 x kCols, the other
// stores the sums of the tile before.
#pragma once
#include "small.cuh"

namespace pingpong {
using large::kCluster;
using large::kConsumers;
using large::kRows;
using large::kWarps;

// Constants of each width. A consumer has kPlaces buffers for its pieces.
template <int kCols> struct Plan;
template <> struct Plan<128> {
    static constexpr int kStages = 6, kPlaces = 2;
};
template <> struct Plan<192> {
    static constexpr int kStages = 5, kPlaces = 1;
};

template <int kCols> struct Shared {
    large::Stage<kCols> stages[Plan<kCols>::kStages];
    float pieces[kConsumers][Plan<kCols>::kPlaces][64 * kPiece];
};

// Named barriers of both consumers, one for the turns of each. Waiting for a parity is
// valid only after the phase before has ended, so a consumer starts when the other one
// has seen all slices of its tile.
__device__ __forceinline__ void wait_for_turn(int group)
{
    asm volatile("bar.sync %0, 256;" ::"r"(3 + group) : "memory");
}
__device__ __forceinline__ void pass_turn(int group)
{
    asm volatile("bar.arrive %0, 256;" ::"r"(4 - group) : "memory");
}
}  // namespace pingpong

template <int kCols>
__global__ void __cluster_dims__(pingpong::kCluster)
    __launch_bounds__(32 * pingpong::kWarps, 1)
        hgemm_pingpong(const __grid_constant__ TensorMap A,
                       const __grid_constant__ TensorMap B,
                       const __grid_constant__ TensorMap C, int M, int N, int K)
{
    using namespace pingpong;
    using Plan = pingpong::Plan<kCols>;
    constexpr int kStages = Plan::kStages;
    extern __shared__ __align__(1024) unsigned char memory[];
    auto& shared = *reinterpret_cast<pingpong::Shared<kCols>*>(memory);
    __shared__ Barrier full[kStages], empty[kStages];
    if (threadIdx.x == 0) {
        for (int s = 0; s < kStages; ++s) {
            mbarrier_init(&full[s], 1);
            mbarrier_init(&empty[s], kCluster);  // one consumer in each block
        }
        fence_mbarrier_init();
    }
    cluster_sync();  // the other block's barriers are ready too
    large::Stage<kCols>* const stages = shared.stages;
    const unsigned rank = cluster_rank();
    const int slices = slices_of(K);
    const int pairs = tiles_of<kCluster * kRows, kCols>(M, N);
    const int cluster = blockIdx.x / kCluster, clusters = gridDim.x / kCluster;
    if (threadIdx.x < 128) {
        release_registers<40>();
        large::fill<kCols, kStages>(stages, full, empty, A, B, pairs, slices, rank, M,
                                    N);
    } else {
        claim_registers<232>();
        const int group = threadIdx.x / 128 - 1, thread = threadIdx.x % 128;
        large::Output<Plan::kPlaces> output = {shared.pieces[group], 0, 0, 0, group};
        int position = group * slices;  // of the tile's first slice, among all slices
        for (int t = cluster + group * clusters; t < pairs;
             t += kConsumers * clusters) {
            const int2 first = large::place<kCols>(t, M, N);
            float upper[kCols / 2], lower[kCols / 2];  // 64 rows of the tile each
            int slot = position % kStages, phase = position / kStages % 2, last = 0;
            position += kConsumers * slices;
            if (t != cluster) wait_for_turn(group);
#pragma unroll 1
            for (int i = 0; i < slices; ++i) {
                const large::Stage<kCols>& stage = stages[slot];
                mbarrier_wait(&full[slot], phase);
                multiply_slice(upper, stage.a, stage.b, i > 0);
                multiply_slice(lower, stage.a + 64 * kDepth, stage.b, i > 0);
                wgmma_wait<2>();  // the products of the slice before have finished
                if (i > 0 && thread < kCluster)
                    mbarrier_arrive_at(&empty[last], thread);
                last = slot;
                if (++slot == kStages) slot = 0, phase ^= 1;
            }
            if (t + clusters < pairs) pass_turn(group);
            wgmma_wait<0>();
            if (thread < kCluster) mbarrier_arrive_at(&empty[last], thread);
            output.x = first.y;
            output.y = first.x + rank * kRows;
#pragma unroll
            for (int p = 0; p < kCols / 2; p += 16) output.store(C, upper + p);
            output.x = first.y;
            output.y += 64;
#pragma unroll
            for (int p = 0; p < kCols / 2; p += 16) output.store(C, lower + p);
        }
        if (thread == 0) bulk_wait<0>();
    }
    cluster_sync();  // no block ends while the other still signals to it
}
