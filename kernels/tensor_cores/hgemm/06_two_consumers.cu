// Idea: two warpgroups multiply, 64 x 256 each, and share the loaded tile of B.
// From the rung before: a tile of 128 x 256 loads three quarters of the bytes per
// product; instructions of 64 x 256 read three quarters of the shared memory. The
// producer is a warpgroup, and gives up registers to the consumers.
// Requires: sm_90a; blocks of kThreads threads; shared memory for kStages Stages;
// tensor maps of A, boxes of kRows x 64, and of B, boxes of 64 x 64, swizzled by 128
// bytes.
#include "../../common/hopper/tma.cuh"
#include "../../common/hopper/wgmma.cuh"
#include "slices.cuh"

constexpr int kRows = 128, kCols = 256, kStages = 4;
constexpr int kThreads = 384;
constexpr int kConsumers = 2;

struct alignas(1024) Stage {
    unsigned short a[kRows * kDepth];
    unsigned short b[kCols * kDepth];  // boxes of 64 columns
};

__global__ void __launch_bounds__(kThreads, 1)
    hgemm_two_consumers(const __grid_constant__ TensorMap A,
                        const __grid_constant__ TensorMap B, float* __restrict__ C,
                        int M, int N, int K)
{
    extern __shared__ __align__(1024) Stage stages[];
    __shared__ Barrier full[kStages], empty[kStages];
    if (threadIdx.x == 0) {
        for (int s = 0; s < kStages; ++s) {
            mbarrier_init(&full[s], 1);
            mbarrier_init(&empty[s], kConsumers);
        }
        fence_mbarrier_init();
    }
    __syncthreads();
    const int2 first = place_of_tile<kRows, kCols>(blockIdx.x, M, N);
    int slot = 0, phase = 0;
    if (threadIdx.x < 128) {
        release_registers<40>();
        for (int i = 0; threadIdx.x == 0 && i < slices_of(K); ++i) {
            mbarrier_wait(&empty[slot], phase ^ 1);
            mbarrier_arrive_expect(&full[slot], sizeof(Stage));
            tma_load(stages[slot].a, A, i * kDepth, first.x, &full[slot]);
            for (int j = 0; j < kCols; j += 64)
                tma_load(stages[slot].b + j * kDepth, B, first.y + j, i * kDepth,
                         &full[slot]);
            if (++slot == kStages) slot = 0, phase ^= 1;
        }
        return;
    }
    claim_registers<232>();
    const int row = (threadIdx.x / 128 - 1) * 64;
    float d[kCols / 2];
    for (int i = 0, last = 0; i < slices_of(K); ++i) {
        mbarrier_wait(&full[slot], phase);
        const Descriptor a = describe_rows_of_k(stages[slot].a + row * kDepth);
        const Descriptor b = describe_rows_of_n(stages[slot].b, kBoxBytes);
        wgmma_fence();
#pragma unroll
        for (int s = 0; s < kDepth / 16; ++s)
            wgmma_f16_rows_of_n(d, a + 2 * s, b + 128 * s, i + s > 0);
        wgmma_commit();
        wgmma_wait<1>();  // the products of the slice before have finished
        if (i > 0 && threadIdx.x % 128 == 0) mbarrier_arrive(&empty[last]);
        last = slot;
        if (++slot == kStages) slot = 0, phase ^= 1;
    }
    wgmma_wait<0>();
    store_rows<kCols>(C, d, first.x + row, first.y, M, N);
}
