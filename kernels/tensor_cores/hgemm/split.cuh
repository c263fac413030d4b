// Tiles of 128 x 128 for pairs of blocks: each multiplies half of k.
#pragma once
#include "../../common/hopper/cluster.cuh"
#include "small.cuh"

namespace split {
constexpr int kRows = 128, kCols = 128, kStages = 6;
constexpr int kGroups = 2, kProducer = 128 * kGroups;  // the producer's thread

struct alignas(1024) Stage {
    unsigned short a[kRows * kDepth];
    unsigned short b[kCols * kDepth];  // boxes of 64 columns
};
struct Shared {
    Stage stages[kStages];
    float4 received[kCols / 8][128];  // the other block's sums; then pieces to store
};

// Publishes mbarriers that were initialised before fence_mbarrier_init. cluster_arrive
// would do so too, but also waits for all other memory accesses.
__device__ __forceinline__ void cluster_arrive_relaxed()
{
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}

// Sends a thread's 64 sums to the same thread of the block `rank`, whose barrier counts
// the bytes.
__device__ __forceinline__ void send_sums(float4 (*to)[128], const float (&d)[64],
                                          Barrier* barrier, unsigned rank)
{
    const unsigned first = shared_address(&to[0][threadIdx.x % 128]);
    unsigned there, arrival;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(first), "r"(rank));
    asm("mapa.shared::cluster.u32 %0, %1, %2;"
        : "=r"(arrival)
        : "r"(shared_address(barrier)), "r"(rank));
#pragma unroll
    for (int j = 0; j < 64; j += 4)
        asm volatile(
            "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32"
            " [%0], {%1, %2, %3, %4}, [%5];" ::"r"(
                there + j / 4 * static_cast<int>(sizeof(to[0]))),
            "f"(d[j]), "f"(d[j + 1]), "f"(d[j + 2]), "f"(d[j + 3]), "r"(arrival)
            : "memory");
}
}  // namespace split

__global__ void __cluster_dims__(2) __launch_bounds__(split::kProducer + 32, 1)
    hgemm_split(const __grid_constant__ TensorMap A,
                const __grid_constant__ TensorMap B,
                const __grid_constant__ TensorMap C, int M, int N, int K)
{
    using namespace split;
    extern __shared__ __align__(1024) Shared pair[];
    __shared__ Barrier full[kStages], empty[kStages], received;
    Stage* const stages = pair->stages;
    float4(*const sums)[128] = pair->received;
    const int half = cluster_rank();
    const int tile = blockIdx.x / 2, down = (M + kRows - 1) / kRows;
    const int2 first = {tile % down * kRows, tile / down * kCols};
    const int early = (slices_of(K) + 1) / 2;  // slices of the first half of k
    const int slices = half == 0 ? early : slices_of(K) - early;
    const int k = half * early * kDepth;
    const auto load = [&](int i) {
        Barrier* const barrier = &full[i % kStages];
        Stage& stage = stages[i % kStages];
        mbarrier_arrive_expect(barrier, sizeof(stage));
        tma_load(stage.a, A, k + i * kDepth, first.x, barrier);
#pragma unroll
        for (int j = 0; j < kCols; j += 64)
            tma_load(stage.b + j * kDepth, B, first.y + j, k + i * kDepth, barrier);
    };
    if (threadIdx.x == kProducer) {
        mbarrier_init(&full[0], 1);
        fence_mbarrier_init();
        load(0);  // starts before the other barriers are ready
        for (int s = 0; s < kStages; ++s) {
            if (s > 0) mbarrier_init(&full[s], 1);
            mbarrier_init(&empty[s], kGroups);
        }
        mbarrier_init(&received, 1);
        fence_mbarrier_init();
        for (int i = 1; i < min(slices, kStages); ++i) load(i);
        mbarrier_arrive_expect(&received, sizeof(pair->received));
    }
    __syncthreads();
    cluster_arrive_relaxed();  // the other block may send its sums
    if (threadIdx.x >= kProducer) {
        for (int i = kStages; threadIdx.x == kProducer && i < slices; ++i) {
            mbarrier_wait(&empty[i % kStages], i / kStages % 2 ^ 1);
            load(i);
        }
        return;
    }
    const int group = threadIdx.x / 128, thread = threadIdx.x % 128;
    float d[kCols / 2];
    for (int i = 0; i < slices; ++i) {
        const int slot = i % kStages;
        mbarrier_wait(&full[slot], i / kStages % 2);
        multiply_slice(d, stages[slot].a + group * 64 * kDepth, stages[slot].b, i > 0);
        wgmma_wait<1>();  // the products of the slice before have finished
        if (i > 0 && thread == 0) mbarrier_arrive(&empty[(i - 1) % kStages]);
    }
    wgmma_wait<0>();
    // The pair's first block stores the upper half of the tile, the second the lower.
    if (group != half) {
        cluster_wait();
        send_sums(sums, d, &received, half ^ 1);
        return;
    }
    mbarrier_wait_cluster(&received, 0);
#pragma unroll
    for (int j = 0; j < kCols / 2; j += 4) {
        const float4 other = sums[j / 4][thread];
        d[j] += other.x;
        d[j + 1] += other.y;
        d[j + 2] += other.z;
        d[j + 3] += other.w;
    }
    sync_warpgroup(1);  // all threads have read the other block's sums
    float* piece = &sums[0][0].x;
#pragma unroll
    for (int p = 0; p < kCols; p += kPiece, piece += 64 * kPiece) {
        put_piece(piece, d + p / 2);
        sync_warpgroup(1);
        if (thread == 0) {
            tma_store(C, first.y + p, first.x + group * 64, piece);
            bulk_commit();
        }
    }
    if (thread == 0) bulk_wait_read<0>();
}
