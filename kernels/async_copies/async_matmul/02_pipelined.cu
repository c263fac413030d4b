// Idea: asynchronous copies fill a ring of slices in shared memory.
// From the rung before: cp.async instead of loads and stores through registers; slices
// of 32 steps, a ring of kStages; A's tile stays row-major, and is swizzled.
// Requires: a block of T::kThreads threads and kStages * T::kBytes of shared memory;
// all arrays aligned to 16 bytes; n and k multiples of 4.
#include "../../common/async_copy.cuh"
#include "multiply.cuh"

// Starts this thread's copies of the slice that begins at step k.
template <class T>
__device__ void copy_slice(float* a, float* b, const float* A, const float* B,
                           int first_row, int first_col, int k, int M, int N, int K)
{
#pragma unroll
    for (int i = threadIdx.x; i < T::kFloatsA / 4; i += T::kThreads) {
        const int row = i / (kDepth / 4), quad = i % (kDepth / 4);
        const size_t at = static_cast<size_t>(first_row + row) * K + k + quad * 4;
        copy_async<4>(a + swizzled(row, quad), A + at,
                      first_row + row < M && k + quad * 4 < K);
    }
#pragma unroll
    for (int i = threadIdx.x; i < T::kFloatsB / 4; i += T::kThreads) {
        const int row = i / (T::kCols / 4), col = i % (T::kCols / 4) * 4;
        const size_t at = static_cast<size_t>(k + row) * N + first_col + col;
        copy_async<4>(b + i * 4, B + at, k + row < K && first_col + col < N);
    }
}

template <class T, int kStages>
__global__ void __launch_bounds__(T::kThreads, 2)
    matmul_pipelined(const float* __restrict__ A, const float* __restrict__ B,
                     float* __restrict__ C, int M, int N, int K)
{
    extern __shared__ __align__(1024) float shared[];
    const int first_row = blockIdx.y * T::kRows, first_col = blockIdx.x * T::kCols;
    const int slices = (K + kDepth - 1) / kDepth;
    const auto a = [&](int slice) {
        return shared + slice % kStages * (T::kBytes / 4);
    };
    const auto start = [&](int slice) {
        if (slice < slices) {
            copy_slice<T>(a(slice), a(slice) + T::kFloatsA, A, B, first_row, first_col,
                          slice * kDepth, M, N, K);
        }
        close_group();
    };
    Sums<T> sums(threadIdx.x);
    for (int slice = 0; slice < kStages - 1; ++slice) {
        start(slice);
    }
    for (int slice = 0; slice < slices; ++slice) {
        wait_for_groups<kStages - 2>();
        // All copies of this slice have arrived, and all threads are done with the
        // previous slice, which the next copies replace.
        __syncthreads();
        sums.add(a(slice), a(slice) + T::kFloatsA);
        start(slice + kStages - 1);
    }
    sums.store(C, first_row, first_col, M, N);
}
