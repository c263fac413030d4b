// Idea: two blocks of a cluster share B: each multicasts one half of it to both.
// From the rung before: clusters of two blocks, one above the other; a block's
// consumers signal both producers when they are done with a slice.
// Requires: a grid with an even number of blocks in y, blocks of T::kThreads + 128
// threads and kStages * T::kBytes of shared memory; all arrays aligned to 16 bytes; n
// and k multiples of 4.
#include "../../common/hopper/cluster.cuh"
#include "../../common/hopper/tma.cuh"
#include "multiply.cuh"

constexpr int kBlocks = 2;  // per cluster

template <class T, int kStages>
__global__ void __cluster_dims__(1, kBlocks) __launch_bounds__(T::kThreads + 128, 1)
    matmul_multicast(const __grid_constant__ TensorMap A,
                     const __grid_constant__ TensorMap B, float* __restrict__ C, int M,
                     int N, int K)
{
    extern __shared__ __align__(1024) float shared[];
    __shared__ Barrier full[kStages], empty[kStages];
    const int first_row = blockIdx.y * T::kRows, first_col = blockIdx.x * T::kCols;
    const int slices = (K + kDepth - 1) / kDepth;
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < kStages; ++stage) {
            mbarrier_init(full + stage, 1);
            mbarrier_init(empty + stage, kBlocks * T::kThreads / 32);
        }
        fence_mbarrier_init();
    }
    cluster_sync();  // both blocks' barriers are initialised before either uses them

    if (threadIdx.x >= T::kThreads) {
        release_registers<24>();
        const int share = kDepth / kBlocks, first = cluster_rank() * share;
        for (int slice = 0; slice < slices && threadIdx.x == T::kThreads; ++slice) {
            const int stage = slice % kStages, parity = slice / kStages % 2;
            float* a = shared + stage * (T::kBytes / 4);
            mbarrier_wait(empty + stage, parity ^ 1);
            mbarrier_arrive_expect(full + stage, T::kBytes);
            tma_load(a, A, slice * kDepth, first_row, full + stage);
            tma_load_multicast(a + T::kFloatsA + first * T::kCols, B, first_col,
                               slice * kDepth + first, full + stage, 3);
        }
    } else {
        claim_registers<240>();
        Sums<T> sums(threadIdx.x);
        for (int slice = 0; slice < slices; ++slice) {
            const int stage = slice % kStages, parity = slice / kStages % 2;
            const float* a = shared + stage * (T::kBytes / 4);
            mbarrier_wait(full + stage, parity);
            sums.add(a, a + T::kFloatsA);
            __syncwarp();  // all lanes have read the slice
            if (threadIdx.x % 32 < kBlocks) {
                mbarrier_arrive_at(empty + stage, threadIdx.x % 32);
            }
        }
        sums.store(C, first_row, first_col, M, N);
    }
    cluster_sync();  // no block ends while the other still arrives at its barriers
}
