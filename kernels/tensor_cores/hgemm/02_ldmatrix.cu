// Idea: keep tiles in shared memory, and load whole fragments of them with ldmatrix.
// From the rung before: four warps share a tile of 64 x 64 sums, 32 x 32 per warp;
// ldmatrix transposes B's fragments as it loads them.
// Requires: blocks of Tile::kThreads threads; sm_80. kWide: n and k are multiples of 8.
#include "tile.cuh"

template <class T, bool kWide>
__global__ void __launch_bounds__(T::kThreads)
    hgemm_ldmatrix(const Half* __restrict__ A, const Half* __restrict__ B,
                   float* __restrict__ C, int M, int N, int K)
{
    __shared__ __align__(1024) Half tiles[T::kHalves];
    Half *const a_tile = tiles, *const b_tile = tiles + T::kRows * kDepth;
    const int2 first = place_of_tile<T::kRows, T::kCols>(blockIdx.x, M, N);
    Sums<T> sums;
    for (int k0 = 0; k0 < K; k0 += kDepth) {
        pieces_of_a<T>([&](int row, int k, int to) {
            copy_piece<kWide>(a_tile + to, A, M, K, first.x + row, k0 + k);
        });
        pieces_of_b<T>([&](int k, int col, int to) {
            copy_piece<kWide>(b_tile + to, B, K, N, k0 + k, first.y + col);
        });
        wait_for_copies();
        __syncthreads();
        sums.add(a_tile, b_tile);
        __syncthreads();
    }
    sums.template store<kWide>(C, first, M, N);
}
