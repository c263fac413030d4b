// Idea: fast.cu, a published kernel, rebuilt: Hilbert's curve, asynchronous stores.
// From the rung before: tiles follow a Hilbert curve, so that concurrent tiles share
// more in the L2 cache; asynchronous stores write sums from shared memory. This follows
// its author's description (cudaforfun.substack.com), but has float32 results.
// Requires: sm_90a; clusters of two blocks of kThreads threads; shared memory for a
// Shared; tensor maps of A, boxes of kRows x 64, of B, boxes of 64 x 64, and of C,
// boxes of 64 x kPiece, swizzled by 128 bytes.
#include "../../common/hopper/cluster.cuh"
#include "../../common/hopper/tma.cuh"
#include "pieces.cuh"
#include "products.cuh"

constexpr int kRows = 128, kCols = 256, kStages = 4;
constexpr int kThreads = 384;
constexpr int kConsumers = 2, kCluster = 2;

struct alignas(1024) Stage {
    unsigned short a[kRows * kDepth];
    unsigned short b[kCols * kDepth];  // boxes of 64 columns
};
struct Shared {
    Stage stages[kStages];
    float pieces[kConsumers][2][64 * kPiece];  // one is filled, one is being stored
};

// The place of step `index` on Hilbert's curve through a square of `side` x `side`, a
// power of two.
__device__ __forceinline__ int2 hilbert(int index, int side)
{
    int2 at = {0, 0};
    for (int s = 1; s < side; s *= 2, index /= 4) {
        const int right = index / 2 & 1, up = (index ^ right) & 1;
        if (up == 0) {
            if (right) at = {s - 1 - at.x, s - 1 - at.y};
            at = {at.y, at.x};
        }
        at.x += s * right;
        at.y += s * up;
    }
    return at;
}

// Calls `work(row, column)` for each tile of this cluster that lies in the matrix.
template <class Work> __device__ __forceinline__ void each_tile(int M, int N, Work work)
{
    constexpr int kHeight = kCluster * kRows;
    int side = 1;
    while (side * kHeight < M || side * kCols < N) side *= 2;
    for (int t = blockIdx.x / kCluster; t < side * side; t += gridDim.x / kCluster) {
        const int2 at = hilbert(t, side);
        if (at.x * kHeight < M && at.y * kCols < N) work(at.x * kHeight, at.y * kCols);
    }
}

__global__ void __cluster_dims__(kCluster) __launch_bounds__(kThreads, 1)
    hgemm_fast_cu(const __grid_constant__ TensorMap A,
                  const __grid_constant__ TensorMap B,
                  const __grid_constant__ TensorMap C, int M, int N, int K)
{
    extern __shared__ __align__(1024) Shared shared[];
    __shared__ Barrier full[kStages], empty[kStages];
    if (threadIdx.x == 0) {
        for (int s = 0; s < kStages; ++s) {
            mbarrier_init(&full[s], 1);
            mbarrier_init(&empty[s], kCluster * kConsumers);
        }
        fence_mbarrier_init();
    }
    cluster_sync();  // the other block's barriers are ready too
    Stage* const stages = shared->stages;
    const unsigned rank = cluster_rank();
    const int slices = slices_of(K);
    int slot = 0, phase = 0;
    if (threadIdx.x < 128) {
        release_registers<40>();
        if (threadIdx.x == 0) each_tile(M, N, [&](int row, int col) {
            for (int i = 0; i < slices; ++i) {
                Stage& stage = stages[slot];
                mbarrier_wait_cluster(&empty[slot], phase ^ 1);
                mbarrier_arrive_expect(&full[slot], sizeof(Stage));
                tma_load(stage.a, A, i * kDepth, row + rank * kRows, &full[slot]);
                constexpr int kShare = kCols / kCluster;
                for (int j = rank * kShare; j < (rank + 1) * kShare; j += 64)
                    tma_load_multicast(stage.b + j * kDepth, B, col + j, i * kDepth,
                                       &full[slot], (1 << kCluster) - 1);
                if (++slot == kStages) slot = 0, phase ^= 1;
            }
        });
    } else {
        claim_registers<232>();
        const int group = threadIdx.x / 128 - 1, thread = threadIdx.x % 128;
        each_tile(M, N, [&](int row, int col) {
            float d[kCols / 2];
            int last = 0;
            for (int i = 0; i < slices; ++i) {
                mbarrier_wait(&full[slot], phase);
                multiply_slice(d, stages[slot].a + group * 64 * kDepth, stages[slot].b,
                               i > 0);
                wgmma_wait<1>();  // the products of the slice before have finished
                if (i > 0 && thread < kCluster)
                    mbarrier_arrive_at(&empty[last], thread);
                last = slot;
                if (++slot == kStages) slot = 0, phase ^= 1;
            }
            wgmma_wait<0>();
            if (thread < kCluster) mbarrier_arrive_at(&empty[last], thread);
#pragma unroll
            for (int p = 0; p < kCols / kPiece; ++p) {
                float* const piece = shared->pieces[group][p % 2];
                if (thread == 0) bulk_wait_read<1>();  // frees this buffer
                sync_warpgroup(1 + group);
                put_piece(piece, d + p * kPiece / 2);
                sync_warpgroup(1 + group);
                if (thread == 0) {
                    tma_store(C, col + p * kPiece, row + rank * kRows + group * 64,
                              piece);
                    bulk_commit();
                }
            }
        });
        if (thread == 0) bulk_wait<0>();
    }
    cluster_sync();  // no block ends while the other still signals to it
}
