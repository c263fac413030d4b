// Idea: warp specialisation: one warp only starts copies; the others only compute.
// From the rung before: no __syncthreads in the loop: each warp that is done with a
// slice arrives at the barrier `empty`, on which the producer waits.
// Requires: a block of T::kThreads + 32 threads and kStages * T::kBytes of shared
// memory; all arrays aligned to 16 bytes; n and k multiples of 4.
#include "../../common/hopper/tma.cuh"
#include "multiply.cuh"

template <class T, int kStages>
__global__ void __launch_bounds__(T::kThreads + 32, 2)
    matmul_specialised(const __grid_constant__ TensorMap A,
                       const __grid_constant__ TensorMap B, float* __restrict__ C,
                       int M, int N, int K)
{
    extern __shared__ __align__(1024) float shared[];
    __shared__ Barrier full[kStages], empty[kStages];
    const int first_row = blockIdx.y * T::kRows, first_col = blockIdx.x * T::kCols;
    const int slices = (K + kDepth - 1) / kDepth;
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < kStages; ++stage) {
            mbarrier_init(full + stage, 1);
            mbarrier_init(empty + stage, T::kThreads / 32);
        }
        fence_mbarrier_init();
    }
    __syncthreads();  // the barriers are initialised before any thread waits for them

    if (threadIdx.x >= T::kThreads) {
        for (int slice = 0; slice < slices && threadIdx.x == T::kThreads; ++slice) {
            const int stage = slice % kStages, parity = slice / kStages % 2;
            float* a = shared + stage * (T::kBytes / 4);
            // On a new barrier, the phase before the first counts as complete.
            mbarrier_wait(empty + stage, parity ^ 1);
            mbarrier_arrive_expect(full + stage, T::kBytes);
            tma_load(a, A, slice * kDepth, first_row, full + stage);
            tma_load(a + T::kFloatsA, B, first_col, slice * kDepth, full + stage);
        }
        return;
    }
    Sums<T> sums(threadIdx.x);
    for (int slice = 0; slice < slices; ++slice) {
        const int stage = slice % kStages, parity = slice / kStages % 2;
        const float* a = shared + stage * (T::kBytes / 4);
        mbarrier_wait(full + stage, parity);
        sums.add(a, a + T::kFloatsA);
        __syncwarp();  // all lanes have read the slice
        if (threadIdx.x % 32 == 0) {
            mbarrier_arrive(empty + stage);
        }
    }
    sums.store(C, first_row, first_col, M, N);
}
