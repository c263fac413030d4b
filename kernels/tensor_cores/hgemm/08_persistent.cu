// Idea: persistent blocks compute many tiles: the next one loads while one is stored.
// From the rung before: one cluster for every two SMs. Its producers and consumers
// visit the same tiles, and the ring continues from one tile to the next.
// Requires: sm_90a; clusters of two blocks of kThreads threads; shared memory for
// kStages Stages; tensor maps of A, boxes of kRows x 64, and of B, boxes of 64 x 64,
// swizzled by 128 bytes.
#include "../../common/hopper/cluster.cuh"
#include "../../common/hopper/tma.cuh"
#include "../../common/hopper/wgmma.cuh"
#include "slices.cuh"

constexpr int kRows = 128, kCols = 256, kStages = 4;
constexpr int kThreads = 384;
constexpr int kConsumers = 2, kCluster = 2;

struct alignas(1024) Stage {
    unsigned short a[kRows * kDepth];
    unsigned short b[kCols * kDepth];  // boxes of 64 columns
};

__global__ void __cluster_dims__(kCluster) __launch_bounds__(kThreads, 1)
    hgemm_persistent(const __grid_constant__ TensorMap A,
                     const __grid_constant__ TensorMap B, float* __restrict__ C, int M,
                     int N, int K)
{
    extern __shared__ __align__(1024) Stage stages[];
    __shared__ Barrier full[kStages], empty[kStages];
    if (threadIdx.x == 0) {
        for (int s = 0; s < kStages; ++s) {
            mbarrier_init(&full[s], 1);
            mbarrier_init(&empty[s], kCluster * kConsumers);
        }
        fence_mbarrier_init();
    }
    cluster_sync();  // the other block's barriers are ready too
    const unsigned rank = cluster_rank();
    const int slices = slices_of(K);
    const int pairs = tiles_of<kCluster * kRows, kCols>(M, N);
    int slot = 0, phase = 0;
    if (threadIdx.x < 128) {
        release_registers<40>();
        const int end = threadIdx.x == 0 ? pairs : 0;
        for (int t = blockIdx.x / kCluster; t < end; t += gridDim.x / kCluster) {
            const int2 first = place_of_tile<kCluster * kRows, kCols>(t, M, N);
            for (int i = 0; i < slices; ++i) {
                Stage& stage = stages[slot];
                mbarrier_wait_cluster(&empty[slot], phase ^ 1);
                mbarrier_arrive_expect(&full[slot], sizeof(Stage));
                tma_load(stage.a, A, i * kDepth, first.x + rank * kRows, &full[slot]);
                constexpr int kShare = kCols / kCluster;
                for (int j = rank * kShare; j < (rank + 1) * kShare; j += 64)
                    tma_load_multicast(stage.b + j * kDepth, B, first.y + j,
                                       i * kDepth, &full[slot], (1 << kCluster) - 1);
                if (++slot == kStages) slot = 0, phase ^= 1;
            }
        }
    } else {
        claim_registers<232>();
        const int row = (threadIdx.x / 128 - 1) * 64, thread = threadIdx.x % 128;
        for (int t = blockIdx.x / kCluster; t < pairs; t += gridDim.x / kCluster) {
            const int2 first = place_of_tile<kCluster * kRows, kCols>(t, M, N);
            float d[kCols / 2];
            int last = 0;
            for (int i = 0; i < slices; ++i) {
                mbarrier_wait(&full[slot], phase);
                const Descriptor a = describe_rows_of_k(stages[slot].a + row * kDepth);
                const Descriptor b = describe_rows_of_n(stages[slot].b, kBoxBytes);
                wgmma_fence();
#pragma unroll
                for (int s = 0; s < kDepth / 16; ++s)
                    wgmma_f16_rows_of_n(d, a + 2 * s, b + 128 * s, i + s > 0);
                wgmma_commit();
                wgmma_wait<1>();  // the products of the slice before have finished
                if (i > 0 && thread < kCluster)
                    mbarrier_arrive_at(&empty[last], thread);
                last = slot;
                if (++slot == kStages) slot = 0, phase ^= 1;
            }
            wgmma_wait<0>();
            if (thread < kCluster) mbarrier_arrive_at(&empty[last], thread);
            store_rows<kCols>(C, d, first.x + rank * kRows + row, first.y, M, N);
        }
    }
    cluster_sync();  // no block ends while the other still signals to it
}
