// Repeats products of one tile of A and one of B in shared memory, so that only the
// tensor cores have work.
#pragma once
#include "../common/hopper/tma.cuh"
#include "../common/hopper/wgmma.cuh"

constexpr int kThreads = 256;
constexpr int kRows = 128, kCols = 256;  // sums of a block
constexpr int kBytes = 128;  // per row of A or B, for any element type
constexpr int kChain = 64;  // steps after which the sums restart at zero

struct alignas(1024) Tiles {
    unsigned char a[kRows * kBytes];
    unsigned char b[kCols * kBytes];
    Barrier full;
};

// Stores a block's sums of the last chain of `steps` products. `multiply` is one
// instruction, which takes 32 bytes of each row; A has kRows rows per block, and B is
// stored transposed, with rows along k.
template <class Sum, class Multiply>
__device__ __forceinline__ void repeat_products(
    const TensorMap& A, const TensorMap& B, Sum* __restrict__ C, int steps,
    Multiply multiply)
{
    extern __shared__ __align__(1024) Tiles tiles[];
    if (threadIdx.x == 0) {
        mbarrier_init(&tiles->full, 1);
        fence_mbarrier_init();
        mbarrier_arrive_expect(&tiles->full, (kRows + kCols) * kBytes);
        tma_load(tiles->a, A, 0, blockIdx.x * kRows, &tiles->full);
        tma_load(tiles->b, B, 0, 0, &tiles->full);
    }
    __syncthreads();
    mbarrier_wait(&tiles->full, 0);
    const int group = threadIdx.x / 128;
    const Descriptor a = describe_rows_of_k(tiles->a + group * 64 * kBytes);
    const Descriptor b = describe_rows_of_k(tiles->b);
    Sum d[kCols / 2];
    for (int step = 0; step < steps; ++step) {
        wgmma_fence();
#pragma unroll
        for (int s = 0; s < kBytes / 32; ++s)
            multiply(d, a + 2 * s, b + 2 * s, step % kChain + s > 0);
        wgmma_commit();
        wgmma_wait<1>();
    }
    wgmma_wait<0>();
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int row = blockIdx.x * kRows + warp * 16 + lane / 4, col = lane % 4 * 2;
#pragma unroll
    for (int j = 0; j < kCols / 2; ++j) {
        const int y = row + j / 2 % 2 * 8, x = col + j / 4 * 8 + j % 2;
        C[static_cast<size_t>(y) * kCols + x] = d[j];
    }
}
