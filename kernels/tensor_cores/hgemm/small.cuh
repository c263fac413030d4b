// Tiles of 64 x kCols, a block for each, whose first copy starts before anything else.
#pragma once
#include "large.cuh"

constexpr int kHeight = 64;

template <int kCols> struct alignas(1024) SmallStage {
    unsigned short a[kHeight * kDepth];
    unsigned short b[kCols * kDepth];  // boxes of 64 columns
};

template <int kCols, int kStages>
__global__ void __launch_bounds__(160, 1)
    hgemm_small(const __grid_constant__ TensorMap A,
                const __grid_constant__ TensorMap B,
                const __grid_constant__ TensorMap C, int M, int N, int K)
{
    extern __shared__ __align__(1024) unsigned char ring[];
    auto* const stages = reinterpret_cast<SmallStage<kCols>*>(ring);
    __shared__ Barrier full[kStages], empty[kStages];
    const int down = (M + kHeight - 1) / kHeight;  // all blocks run at once
    const int2 first = {static_cast<int>(blockIdx.x) % down * kHeight,
                        static_cast<int>(blockIdx.x) / down * kCols};
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
        mbarrier_init(&full[0], 1);
        fence_mbarrier_init();
        load(0);  // starts before the other barriers are ready
        for (int s = 0; s < kStages; ++s) {
            if (s > 0) mbarrier_init(&full[s], 1);
            mbarrier_init(&empty[s], 1);
        }
        fence_mbarrier_init();
        for (int i = 1; i < min(slices, kStages); ++i) load(i);
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
        multiply_slice(d, stages[slot].a, stages[slot].b, i > 0);
        wgmma_wait<1>();  // the products of the slice before have finished
        if (i > 0 && threadIdx.x == 0) mbarrier_arrive(&empty[(i - 1) % kStages]);
    }
    wgmma_wait<0>();
    sync_warpgroup(1);  // no product reads the ring any more
    float* piece = reinterpret_cast<float*>(ring);
#pragma unroll
    for (int p = 0; p < kCols; p += kPiece, piece += 64 * kPiece) {
        put_piece(piece, d + p / 2);
        sync_warpgroup(1);
        if (threadIdx.x == 0) {
            tma_store(C, first.y + p, first.x, piece);
            bulk_commit();
        }
    }
    if (threadIdx.x == 0) bulk_wait_read<0>();
}
