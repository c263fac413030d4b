// Idea: products that would leave SMs idle take smaller tiles.
// From the rung before: a second kernel with tiles of 64 x kCols, a block for each; its
// copies start before the block is complete. A table says which sizes take it.
// Requires: what hgemm_overlapped requires, or sm_90a; blocks of 160 threads; shared
// memory for kStages SmallStages; tensor maps of A and B, boxes of 64 x 64, swizzled by
// 128 bytes.
#include "large.cuh"

constexpr int kHeight = 64;

template <int kCols> struct alignas(1024) SmallStage {
    unsigned short a[kHeight * kDepth];
    unsigned short b[kCols * kDepth];  // boxes of 64 columns
};

template <int kCols, int kStages>
__global__ void __launch_bounds__(160)
    hgemm_small(const __grid_constant__ TensorMap A,
                const __grid_constant__ TensorMap B, float* __restrict__ C, int M,
                int N, int K)
{
    extern __shared__ __align__(1024) unsigned char ring[];
    auto* const stages = reinterpret_cast<SmallStage<kCols>*>(ring);
    __shared__ Barrier full[kStages], empty[kStages];
    const int2 first = place_of_tile<kHeight, kCols>(blockIdx.x, M, N);
    const int slices = slices_of(K);
    const auto load = [&](int i) {
        Barrier* const barrier = &full[i % kStages];
        SmallStage<kCols>& stage = stages[i % kStages];
        mbarrier_arrive_expect(barrier, sizeof(stage));
        tma_load(stage.a, A, i * kDepth, first.x, barrier);
#pragma unroll
        for (int j = 0; j < kCols; j += 64)
            tma_load(stage.b + j * kDepth, B, first.y + j, i * kDepth, barrier);
    };
    if (threadIdx.x == 128) {
        tma_prefetch(A);
        tma_prefetch(B);
        for (int s = 0; s < kStages; ++s) {
            mbarrier_init(&full[s], 1);
            mbarrier_init(&empty[s], 1);
        }
        fence_mbarrier_init();
        for (int i = 0; i < min(slices, kStages); ++i) load(i);
    }
    __syncthreads();
    if (threadIdx.x >= 128) {
        for (int i = kStages; threadIdx.x == 128 && i < slices; ++i) {
            mbarrier_wait(&empty[i % kStages], i / kStages % 2 ^ 1);
            load(i);
        }
        return;
    }
    float d[kCols / 2];
    for (int i = 0; i < slices; ++i) {
        const int slot = i % kStages;
        mbarrier_wait(&full[slot], i / kStages % 2);
        const Descriptor a = describe_rows_of_k(stages[slot].a);
        const Descriptor b = describe_rows_of_n(stages[slot].b, kBoxBytes);
        wgmma_fence();
#pragma unroll
        for (int s = 0; s < kDepth / 16; ++s)
            wgmma_f16_rows_of_n(d, a + 2 * s, b + 128 * s, i + s > 0);
        wgmma_commit();
        wgmma_wait<1>();  // the products of the slice before have finished
        if (i > 0 && threadIdx.x == 0) mbarrier_arrive(&empty[(i - 1) % kStages]);
    }
    wgmma_wait<0>();
    store_rows<kCols>(C, d, first.x, first.y, M, N);
}
