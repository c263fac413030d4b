// Idea: a tile found by search, 64 x 512, 8 x 16 sums: 24 operands for 128 products.
// From the rung before: only the tile (before: 16 operands for 64 products) and its
// name; the search has its own record.
// Requires: a block of Tile::kThreads threads and Tile::kBytes of shared memory. kWidth
// = 4: rows start at multiples of 16 bytes, n and k are multiples of 4. kWhole: kWidth
// = 4, and the tile divides m, n and k.
#include "pipeline.cuh"

template <class T, int kWidth, bool kWhole>
__global__ void __launch_bounds__(T::kThreads, T::kBlocks)
    sgemm_tuned(int M, int N, int K, float alpha, const float* __restrict__ A, int lda,
                const float* __restrict__ B, int ldb, float beta, float* __restrict__ C,
                int ldc)
{
    extern __shared__ __align__(16) float shared[];
    constexpr bool kAhead = true;
    const int2 place = place_of_tile<T>(blockIdx.x, M, N);
    Multiplication<T, kWidth, kWhole, kAhead> tile(M, N, A, lda, B, ldb, place, 0, K,
                                                   shared);
    tile.run(slices_of<T>(K));
    tile.store(C, ldc, alpha, beta);
}
