// Tiles of 128 x kCols whose sums are stored while the next tile is multiplied: half of
// the sums, or all if a thread has registers for the sums of two tiles.
#pragma once
#include "../../common/hopper/cluster.cuh"
#include "../../common/hopper/tma.cuh"
#include "pieces.cuh"
#include "products.cuh"

namespace large {
constexpr int kRows = 128, kWarps = 12;
constexpr int kConsumers = 2, kCluster = 2;

// Parameters of a tile's width: kLater pieces are stored during the next tile, one
// every kUnroll slices, through kPlaces buffers in shared memory.
template <int kCols> struct Plan;
template <> struct Plan<256> {
    static constexpr int kStages = 4, kPlaces = 2, kLater = 4, kUnroll = 4;
};

template <int kCols> struct alignas(1024) Stage {
    unsigned short a[kRows * kDepth];
    unsigned short b[kCols * kDepth];  // boxes of 64 columns
};
template <int kCols> struct Shared {
    Stage<kCols> stages[Plan<kCols>::kStages];
    float pieces[kConsumers][Plan<kCols>::kPlaces][64 * kPiece];
};

// Like place_of_tile, but every other group of rows runs from its last column back:
// the previous tiles have just read those columns of B.
template <int kCols> __device__ __forceinline__ int2 place(int index, int M, int N)
{
    int2 at = place_of_tile<kCluster * kRows, kCols>(index, M, N);
    const bool back = at.x / (kGroup * kCluster * kRows) % 2 == 1;
    if (back) at.y = (N - 1) / kCols * kCols - at.y;
    return at;
}

// The place of a consumer's next piece in C, and its alternating buffers.
template <int kPlaces> struct Output {
    float (*pieces)[64 * kPiece];
    int x, y, turn, group;

    // Stores 64 x kPiece sums, 16 per thread; the copy engine skips elements outside
    // of C.
    __device__ __forceinline__ void store(const TensorMap& C, const float* sums)
    {
        const int thread = threadIdx.x % 128;
        float* const piece = pieces[turn];
        if (thread == 0) bulk_wait_read<kPlaces - 1>();  // frees this buffer
        sync_warpgroup(1 + group);
        put_piece(piece, sums);
        sync_warpgroup(1 + group);
        if (thread == 0) {
            tma_store(C, x, y, piece);
            bulk_commit();
        }
        x += kPiece;
        turn = (turn + 1) % kPlaces;
    }
};

// Copies the slices of a cluster's tiles into the ring, by the first thread of a block.
// `pairs` of tiles are beside each other, one for each block.
template <int kCols, int kStages>
__device__ __forceinline__ void fill(Stage<kCols>* stages, Barrier* full,
                                     Barrier* empty, const TensorMap& A,
                                     const TensorMap& B, int pairs, int slices,
                                     unsigned rank, int M, int N)
{
    int slot = 0, phase = 0;
    const int end = threadIdx.x == 0 ? pairs : 0;
    bool back = false;  // every other tile: from the slices that L2 read last
    for (int t = blockIdx.x / kCluster; t < end; t += gridDim.x / kCluster) {
        const int2 first = place<kCols>(t, M, N);
        for (int i = 0; i < slices; ++i) {
            const int k = (back ? slices - 1 - i : i) * kDepth;
            Stage<kCols>& stage = stages[slot];
            mbarrier_wait_cluster(&empty[slot], phase ^ 1);
            mbarrier_arrive_expect(&full[slot], sizeof(stage));
            tma_load(stage.a, A, k, first.x + rank * kRows, &full[slot]);
            // The blocks share boxes, or halves of boxes if their number is odd.
            constexpr int kHigh = kCols / 64 % kCluster == 0 ? kDepth : kDepth / 2;
            constexpr int kShare = kCols / 64 * kDepth / kCluster;
#pragma unroll
            for (int j = 0; j < kShare; j += kHigh) {
                const int row = rank * kShare + j;  // among all boxes of 64 columns
                tma_load_multicast(stage.b + row * 64, B, first.y + row / kDepth * 64,
                                   k + row % kDepth, &full[slot], (1 << kCluster) - 1);
            }
            if (++slot == kStages) slot = 0, phase ^= 1;
        }
        back = !back;
    }
}
}  // namespace large

template <int kCols>
__global__ void __cluster_dims__(large::kCluster)
    __launch_bounds__(32 * large::kWarps, 1)
        hgemm_overlapped(const __grid_constant__ TensorMap A,
                         const __grid_constant__ TensorMap B,
                         const __grid_constant__ TensorMap C, int M, int N, int K)
{
    using namespace large;
    using Plan = large::Plan<kCols>;
    constexpr int kStages = Plan::kStages, kUnroll = Plan::kUnroll;
    extern __shared__ __align__(1024) unsigned char memory[];
    auto& shared = *reinterpret_cast<Shared<kCols>*>(memory);
    __shared__ Barrier full[kStages], empty[kStages];
    if (threadIdx.x == 0) {
        for (int s = 0; s < kStages; ++s) {
            mbarrier_init(&full[s], 1);
            mbarrier_init(&empty[s], kCluster * kConsumers);
        }
        fence_mbarrier_init();
    }
    cluster_sync();  // the other block's barriers are ready too
    Stage<kCols>* const stages = shared.stages;
    const unsigned rank = cluster_rank();
    // Whole rounds of kUnroll slices; beyond K the copy engine delivers zeros.
    const int slices = (slices_of(K) + kUnroll - 1) / kUnroll * kUnroll;
    const int pairs = tiles_of<kCluster * kRows, kCols>(M, N);
    int slot = 0, phase = 0;
    if (threadIdx.x < 128) {
        release_registers<40>();
        fill<kCols, kStages>(stages, full, empty, A, B, pairs, slices, rank, M, N);
    } else {
        claim_registers<232>();
        const int group = threadIdx.x / 128 - 1, thread = threadIdx.x % 128;
        Output<Plan::kPlaces> output = {shared.pieces[group], 0, 0, 0, group};
        constexpr int kLater = 16 * Plan::kLater, kNow = kCols / 2 - kLater;
        float later[kLater];
        int waiting = 0;
        const auto store_one = [&] {
            output.store(C, later);
#pragma unroll
            for (int i = 0; i < kLater - 16; ++i) later[i] = later[i + 16];
            --waiting;
        };
        for (int t = blockIdx.x / kCluster; t < pairs; t += gridDim.x / kCluster) {
            const int2 first = place<kCols>(t, M, N);
            float d[kCols / 2];
            int last = 0;
#pragma unroll 1
            for (int i0 = 0; i0 < slices; i0 += kUnroll)
#pragma unroll
                for (int u = 0; u < kUnroll; ++u) {
                    const int i = i0 + u;
                    mbarrier_wait(&full[slot], phase);
                    multiply_slice(d, stages[slot].a + group * 64 * kDepth,
                                   stages[slot].b, i > 0);
                    wgmma_wait<1>();  // the products of the slice before have finished
                    if (i > 0 && thread < kCluster)
                        mbarrier_arrive_at(&empty[last], thread);
                    last = slot;
                    if (++slot == kStages) slot = 0, phase ^= 1;
                    if (u == 0 && waiting > 0) store_one();
                }
            wgmma_wait<0>();
            if (thread < kCluster) mbarrier_arrive_at(&empty[last], thread);
            while (waiting > 0) store_one();  // left over if there were few slices
            output.x = first.y;
            output.y = first.x + rank * kRows + group * 64;
#pragma unroll
            for (int p = 0; p < kNow; p += 16) output.store(C, d + p);
#pragma unroll
            for (int i = 0; i < kLater; ++i) later[i] = d[kNow + i];
            waiting = Plan::kLater;
        }
        while (waiting > 0) store_one();
        if (thread == 0) bulk_wait<0>();
    }
    cluster_sync();  // no block ends while the other still signals to it
}
