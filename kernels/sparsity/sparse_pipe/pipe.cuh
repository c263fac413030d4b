// Repeats sparse products of the same tiles in shared memory, so that only the tensor
// cores have work.
#pragma once
#include "../../common/hopper/tma.cuh"
#include "../../common/hopper/wgmma_sparse.cuh"

using Half = unsigned short;

constexpr int kThreads = 256;
constexpr int kHigh = 128, kWide = 256;  // a block's sums
constexpr int kSlab = 64;  // steps of k
constexpr int kChain = 64;  // steps after which the sums restart at zero

struct alignas(1024) Tiles {
    Half values[kHigh * kSlab / 2];
    Half b[kSlab * kWide];
    Barrier full;
};

// Stores a block's sums of the last chain of `steps` products of its rows of A with B.
// `multiply` starts two products, of 32 of k each.
template <class Multiply>
__device__ __forceinline__ void repeat_products(
    const TensorMap& values, const unsigned* __restrict__ metadata, const TensorMap& B,
    float* __restrict__ C, int steps, Multiply multiply)
{
    extern __shared__ __align__(1024) Tiles tiles[];
    if (threadIdx.x == 0) {
        mbarrier_init(&tiles->full, 1);
        fence_mbarrier_init();
        mbarrier_arrive_expect(&tiles->full, kSlab * (kHigh + 2 * kWide));
        tma_load(tiles->values, values, 0, blockIdx.x * kHigh, &tiles->full);
        for (int i = 0; i < kWide / 64; ++i)
            tma_load(tiles->b + i * 64 * kSlab, B, i * 64, 0, &tiles->full);
    }
    __syncthreads();
    mbarrier_wait(&tiles->full, 0);
    const unsigned e = metadata[blockIdx.x * kThreads + threadIdx.x];
    const Half* const mine = tiles->values + threadIdx.x / 128 * 64 * kSlab / 2;
    const Descriptor b = describe_rows_of_n(tiles->b, kSlab * 128);
    float d[kWide / 2];
    for (int step = 0; step < steps; ++step) {
        wgmma_fence();
        multiply(d, mine, b, e, step % kChain > 0);
        wgmma_commit();
        wgmma_wait<1>();
    }
    wgmma_wait<0>();
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int row = blockIdx.x * kHigh + warp * 16 + lane / 4, col = lane % 4 * 2;
#pragma unroll
    for (int j = 0; j < kWide / 2; ++j) {
        const int y = row + j / 2 % 2 * 8, x = col + j / 4 * 8 + j % 2;
        C[static_cast<size_t>(y) * kWide + x] = d[j];
    }
}
