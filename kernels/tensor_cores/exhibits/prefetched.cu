// Exhibit: the fragments of the next slice are loaded while the tensor cores multiply
// this slice's. The compiler considers a product finished once it is issued, and gives
// both slices the same registers.
#include "../../common/hopper/cluster.cuh"
#include "../tf32gemm/fragments.cuh"

constexpr int kRows = 256, kCols = 128, kStages = 4;
constexpr int kThreads = 384;
constexpr int kConsumers = 2, kCluster = 2;

struct alignas(1024) Stage {
    float a[kRows * kDepth];
    float b[kCols * kDepth];  // boxes of 32 columns
};

__global__ void __cluster_dims__(kCluster) __launch_bounds__(kThreads, 1)
    tf32gemm_prefetched(const __grid_constant__ TensorMap A,
                        const __grid_constant__ TensorMap B, float* __restrict__ C,
                        int M, int N, int K)
{
    extern __shared__ __align__(1024) Stage stages[];
    __shared__ Barrier full[kStages], empty[kStages];
    if (threadIdx.x == 0) {
        for (int s = 0; s < kStages; ++s) {
            mbarrier_init(&full[s], 1);
            mbarrier_init(&empty[s], kCluster * kConsumers * 4);
        }
        fence_mbarrier_init();
    }
    cluster_sync();
    const unsigned rank = cluster_rank();
    const int slices = (K + kDepth - 1) / kDepth;
    const int pairs = tiles_of<kRows, kCluster * kCols>(M, N);
    int slot = 0, phase = 0;
    if (threadIdx.x < 128) {
        release_registers<40>();
        const int end = threadIdx.x == 0 ? pairs : 0;
        for (int t = blockIdx.x / kCluster; t < end; t += gridDim.x / kCluster) {
            const int2 first = place_of_tile<kRows, kCluster * kCols>(t, M, N);
            for (int i = 0; i < slices; ++i) {
                Stage& stage = stages[slot];
                mbarrier_wait_cluster(&empty[slot], phase ^ 1);
                mbarrier_arrive_expect(&full[slot], sizeof(Stage));
                constexpr int kShare = kRows / kCluster;
                tma_load_multicast(stage.a + rank * kShare * kDepth, A, i * kDepth,
                                   first.x + rank * kShare, &full[slot],
                                   (1 << kCluster) - 1);
                for (int j = 0; j < kCols; j += 32)
                    tma_load(stage.b + j * kDepth, B, first.y + rank * kCols + j,
                             i * kDepth, &full[slot]);
                if (++slot == kStages) slot = 0, phase ^= 1;
            }
        }
    } else {
        claim_registers<232>();
        const int columns = (threadIdx.x / 128 - 1) * 64;  // this warpgroup's first
        const Lane lane(threadIdx.x % 128);
        for (int t = blockIdx.x / kCluster; t < pairs; t += gridDim.x / kCluster) {
            const int2 first = place_of_tile<kRows, kCluster * kCols>(t, M, N);
            float d[kRows / 2];
            Fragments next;
            mbarrier_wait(&full[slot], phase);
            next.load(stages[slot].b + columns * kDepth, lane);
            for (int i = 0; i < slices; ++i) {
                const Fragments b = next;
                const Descriptor a = describe_rows_of_k(stages[slot].a);
                wgmma_fence();
#pragma unroll
                for (int s = 0; s < kDepth / 8; ++s)
                    wgmma_tf32(d, b.at[s], a + 2 * s, i + s > 0);
                wgmma_commit();
                const int last = slot;
                if (++slot == kStages) slot = 0, phase ^= 1;
                if (i + 1 < slices) {  // loads while the tensor cores multiply
                    mbarrier_wait(&full[slot], phase);
                    next.load(stages[slot].b + columns * kDepth, lane);
                }
                wgmma_wait<0>();
                __syncwarp();  // all lanes have loaded this slice
                if (threadIdx.x % 32 < kCluster)
                    mbarrier_arrive_at(&empty[last], threadIdx.x % 32);
            }
            const int x = first.y + rank * kCols + columns + lane.column;
            const int y = first.x + 2 * lane.row;
            float* const to = C + static_cast<size_t>(y) * N + x;
#pragma unroll
            for (int j = 0; j < kRows / 8; ++j)
#pragma unroll
                for (int e = 0; e < 2; ++e)
                    store_if(x < N && y + 8 * j + e < M,
                             to + static_cast<size_t>(8 * j + e) * N, d[4 * j + e],
                             d[4 * j + 2 + e]);
        }
    }
    cluster_sync();  // no block ends while the other may still signal it
}
