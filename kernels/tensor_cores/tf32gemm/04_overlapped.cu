// Idea: store part of a tile while the next one is multiplied.
// From the rung before: kLater of a thread's 32 pairs of rows stay in registers, and
// one is stored during each slice, so that the SMs do not all store at once.
// Requires: sm_90a; clusters of two blocks of kThreads threads; shared memory for
// kStages Stages; tensor maps of A, boxes of kRows / 2 x 32, and of B, boxes of 32 x
// 32, of TF32, swizzled by 128 bytes.
#include "../../common/hopper/cluster.cuh"
#include "fragments.cuh"

constexpr int kRows = 256, kCols = 128, kStages = 4;
constexpr int kLater = 8;  // pairs of rows that are stored later
constexpr int kThreads = 384;
constexpr int kConsumers = 2, kCluster = 2;

struct alignas(1024) Stage {
    float a[kRows * kDepth];
    float b[kCols * kDepth];  // boxes of 32 columns
};

// Sums of a finished tile: pairs of rows of two columns, 8 rows apart.
struct Waiting {
    float sums[4 * kLater];
    float* to;
    int rows = 0, pairs = 0;  // rows of C from `to` on, and pairs still to store

    __device__ __forceinline__ void store_one(int N)
    {
        store_if(rows > 0, to, sums[0], sums[2]);
        store_if(rows > 1, to + N, sums[1], sums[3]);
#pragma unroll
        for (int i = 0; i < 4 * kLater - 4; ++i) sums[i] = sums[i + 4];
        to += static_cast<size_t>(8) * N;
        rows -= 8;
        --pairs;
    }
};

__global__ void __cluster_dims__(kCluster) __launch_bounds__(kThreads, 1)
    tf32gemm_overlapped(const __grid_constant__ TensorMap A,
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
        Waiting waiting;
        for (int t = blockIdx.x / kCluster; t < pairs; t += gridDim.x / kCluster) {
            const int2 first = place_of_tile<kRows, kCluster * kCols>(t, M, N);
            float d[kRows / 2];
            for (int i = 0; i < slices; ++i) {
                mbarrier_wait(&full[slot], phase);
                Fragments b;
                b.load(stages[slot].b + columns * kDepth, lane);
                const Descriptor a = describe_rows_of_k(stages[slot].a);
                wgmma_fence();
#pragma unroll
                for (int s = 0; s < kDepth / 8; ++s)
                    wgmma_tf32(d, b.at[s], a + 2 * s, i + s > 0);
                wgmma_commit();
                if (waiting.pairs > 0) waiting.store_one(N);
                wgmma_wait<0>();  // meanwhile the other consumer's products run
                __syncwarp();  // all lanes have loaded this slice
                if (threadIdx.x % 32 < kCluster)
                    mbarrier_arrive_at(&empty[slot], threadIdx.x % 32);
                if (++slot == kStages) slot = 0, phase ^= 1;
            }
            while (waiting.pairs > 0) waiting.store_one(N);  // more pairs than slices
            const int x = first.y + rank * kCols + columns + lane.column;
            const int y = first.x + 2 * lane.row;
            float* const to = C + static_cast<size_t>(y) * N + x;
            const int rows = x < N ? M - y : 0;
            constexpr int kNow = kRows / 8 - kLater;
#pragma unroll
            for (int j = 0; j < kNow; ++j)
#pragma unroll
                for (int e = 0; e < 2; ++e)
                    store_if(8 * j + e < rows, to + static_cast<size_t>(8 * j + e) * N,
                             d[4 * j + e], d[4 * j + 2 + e]);
#pragma unroll
            for (int i = 0; i < 4 * kLater; ++i) waiting.sums[i] = d[4 * kNow + i];
            waiting.to = to + static_cast<size_t>(8 * kNow) * N;
            waiting.rows = rows - 8 * kNow;
            waiting.pairs = kLater;
        }
        while (waiting.pairs > 0) waiting.store_one(N);
    }
    cluster_sync();  // no block ends while the other may still signal it
}
