// Idea: one thread starts two TMA copies per slice for the whole block.
// From the rung before: tensor boxes instead of 16 bytes per thread; no addresses, no
// bounds checks; a slice has arrived when its barrier has counted its bytes.
// Requires: a block of T::kThreads threads and kStages * T::kBytes of shared memory;
// all arrays aligned to 16 bytes; n and k multiples of 4.
#include "../../common/hopper/tma.cuh"
#include "multiply.cuh"

template <class T, int kStages>
__global__ void __launch_bounds__(T::kThreads, 2)
    matmul_tma(const __grid_constant__ TensorMap A, const __grid_constant__ TensorMap B,
               float* __restrict__ C, int M, int N, int K)
{
    extern __shared__ __align__(1024) float shared[];
    __shared__ Barrier full[kStages];
    const int first_row = blockIdx.y * T::kRows, first_col = blockIdx.x * T::kCols;
    const int slices = (K + kDepth - 1) / kDepth;
    const auto a = [&](int slice) {
        return shared + slice % kStages * (T::kBytes / 4);
    };
    const auto start = [&](int slice) {
        Barrier* barrier = full + slice % kStages;
        mbarrier_arrive_expect(barrier, T::kBytes);
        tma_load(a(slice), A, slice * kDepth, first_row, barrier);
        tma_load(a(slice) + T::kFloatsA, B, first_col, slice * kDepth, barrier);
    };
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < kStages; ++stage) {
            mbarrier_init(full + stage, 1);
        }
        fence_mbarrier_init();
        for (int slice = 0; slice < min(kStages, slices); ++slice) {
            start(slice);
        }
    }
    __syncthreads();  // the barriers are initialised before any thread waits for them

    Sums<T> sums(threadIdx.x);
    for (int slice = 0; slice < slices; ++slice) {
        mbarrier_wait(full + slice % kStages, slice / kStages % 2);
        sums.add(a(slice), a(slice) + T::kFloatsA);
        __syncthreads();  // all threads have read the slice before it is replaced
        if (threadIdx.x == 0 && slice + kStages < slices) {
            start(slice + kStages);
        }
    }
    sums.store(C, first_row, first_col, M, N);
}
