// Idea: read the operands of the next step of k before those of this one are used.
// From the rung before: a second set of operand registers, across slices too; the
// barrier comes before the last step instead of after it.
// Requires: a block of Tile::kThreads threads and Tile::kBytes of shared memory. kWidth
// = 4: rows start at multiples of 16 bytes, n and k are multiples of 4. kWhole: kWidth
// = 4, and the tile divides m, n and k.
#include "pipeline.cuh"

template <class T, int kWidth, bool kWhole>
__global__ void __launch_bounds__(T::kThreads, T::kBlocks)
    sgemm_prefetched(int M, int N, int K, float alpha, const float* __restrict__ A,
                     int lda, const float* __restrict__ B, int ldb, float beta,
                     float* __restrict__ C, int ldc)
{
    extern __shared__ __align__(16) float shared[];
    constexpr bool kAhead = true;
    const int2 place = place_of_tile<T>(blockIdx.x, M, N);
    Multiplication<T, kWidth, kWhole, kAhead> tile(M, N, A, lda, B, ldb, place, 0, K,
                                                   shared);
    tile.run(slices_of<T>(K));
    tile.store(C, ldc, alpha, beta);
}
