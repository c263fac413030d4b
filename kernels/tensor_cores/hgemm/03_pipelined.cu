// Idea: asynchronous copies fill a ring of tiles, and a warp has 64 x 64 sums.
// From the rung before: kStages stages, with copies to all but one in flight; tiles of
// 128 x 256, whose warps load half as many bytes of shared memory per product.
// Requires: blocks of Tile::kThreads threads, kStages x Tile::kHalves halves of shared
// memory; sm_80. kWide: n and k are multiples of 8.
#include "tile.cuh"

constexpr int kStages = 3;

template <class T, bool kWide>
__global__ void __launch_bounds__(T::kThreads)
    hgemm_pipelined(const Half* __restrict__ A, const Half* __restrict__ B,
                    float* __restrict__ C, int M, int N, int K)
{
    extern __shared__ __align__(1024) Half ring[];
    const int2 first = place_of_tile<T::kRows, T::kCols>(blockIdx.x, M, N);
    const int slices = (K + kDepth - 1) / kDepth;
    const auto fill = [&](int slice) {
        Half* const a_tile = ring + slice % kStages * T::kHalves;
        Half* const b_tile = a_tile + T::kRows * kDepth;
        const int k0 = slice * kDepth;
        if (slice < slices) {
            pieces_of_a<T>([&](int row, int k, int to) {
                copy_piece<kWide>(a_tile + to, A, M, K, first.x + row, k0 + k);
            });
            pieces_of_b<T>([&](int k, int col, int to) {
                copy_piece<kWide>(b_tile + to, B, K, N, k0 + k, first.y + col);
            });
        }
        close_group();  // empty past the last slice, to keep the count of groups
    };
    for (int slice = 0; slice < kStages - 1; ++slice) fill(slice);
    Sums<T> sums;
    for (int slice = 0; slice < slices; ++slice) {
        wait_for_groups<kStages - 2>();
        __syncthreads();  // this slice is here, and the previous one has been read
        fill(slice + kStages - 1);
        const Half* const a_tile = ring + slice % kStages * T::kHalves;
        sums.add(a_tile, a_tile + T::kRows * kDepth);
    }
    sums.template store<kWide>(C, first, M, N);
}
