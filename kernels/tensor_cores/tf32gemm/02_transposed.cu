// Idea: transpose B first, because wgmma reads TF32 from shared memory only along k.
// From the rung before: a pass that writes B's transpose, then the structure of
// hgemm's last rungs: TMA, two consumers of 64 x 256, clusters, persistent blocks. The
// copy engine rounds to TF32.
// Requires: sm_90a; clusters of two blocks of kWarps warps; shared memory for kStages
// Stages; tensor maps of A and of B's transpose, boxes of 128 x 32 of TF32, swizzled
// by 128 bytes.
#include "../../common/hopper/cluster.cuh"
#include "../../common/hopper/tma.cuh"
#include "../../common/hopper/wgmma.cuh"
#include "../place.cuh"

constexpr int kRows = 128, kCols = 256, kDepth = 32, kStages = 4;
constexpr int kWarps = 12;
constexpr int kConsumers = 2, kCluster = 2;
constexpr int kEdge = 32, kHeight = 8;  // tiles of the transpose, rows of threads

struct alignas(1024) Stage {
    float a[kRows * kDepth];
    float b[kCols * kDepth];
};

// T is the transpose of B, which is K x N.
__global__ void __launch_bounds__(kEdge* kHeight)
    tf32gemm_transpose(const float* __restrict__ B, float* __restrict__ T, int K, int N)
{
    __shared__ float tile[kEdge][kEdge + 1];
    const int x = threadIdx.x, k0 = blockIdx.y * kEdge, n0 = blockIdx.x * kEdge;
    for (int y = threadIdx.y; y < kEdge; y += kHeight)
        if (k0 + y < K && n0 + x < N)
            tile[y][x] = B[static_cast<size_t>(k0 + y) * N + n0 + x];
    __syncthreads();
    for (int y = threadIdx.y; y < kEdge; y += kHeight)
        if (n0 + y < N && k0 + x < K)
            T[static_cast<size_t>(n0 + y) * K + k0 + x] = tile[x][y];
}

__global__ void __cluster_dims__(kCluster) __launch_bounds__(32 * kWarps, 1)
    tf32gemm_transposed(const __grid_constant__ TensorMap A,
                        const __grid_constant__ TensorMap T, float* __restrict__ C,
                        int M, int N, int K)
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
    cluster_sync();  // the other block's barriers are initialised too
    const unsigned rank = cluster_rank();
    const int slices = (K + kDepth - 1) / kDepth;
    const int pairs = tiles_of<kCluster * kRows, kCols>(M, N);
    int slot = 0, phase = 0;
    if (threadIdx.x < 128) {
        release_registers<40>();
        const int end = threadIdx.x == 0 ? pairs : 0;
        for (int t = blockIdx.x / kCluster; t < end; t += gridDim.x / kCluster) {
            const int2 first = place_of_tile<kCluster * kRows, kCols>(t, M, N);
            for (int i = 0; i < slices; ++i) {
                Stage& stage = stages[slot];
                constexpr int kShare = kCols / kCluster;
                mbarrier_wait_cluster(&empty[slot], phase ^ 1);
                mbarrier_arrive_expect(&full[slot], sizeof(Stage));
                tma_load(stage.a, A, i * kDepth, first.x + rank * kRows, &full[slot]);
                tma_load_multicast(stage.b + rank * kShare * kDepth, T, i * kDepth,
                                   first.y + rank * kShare, &full[slot],
                                   (1 << kCluster) - 1);
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
                const Descriptor b = describe_rows_of_k(stages[slot].b);
                wgmma_fence();
#pragma unroll
                for (int s = 0; s < kDepth / 8; ++s)
                    wgmma_tf32(d, a + 2 * s, b + 2 * s, i + s > 0);
                wgmma_commit();
                wgmma_wait<1>();  // the previous slice's products are done
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
    cluster_sync();  // no block ends while the other may still signal it
}
