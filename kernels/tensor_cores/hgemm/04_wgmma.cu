// Idea: the copy engine fetches tiles, and wgmma multiplies them from shared memory.
// From the rung before: an instruction multiplies 64 x 128 x 16 for a whole warpgroup,
// with no fragments of A and B in registers; one thread starts the copies of a stage.
// One stage suffices: while one of an SM's three blocks copies, the others multiply.
// Requires: sm_90a; blocks of kThreads threads; shared memory for a Stage; tensor maps
// of A, boxes of kRows x 64, and of B, boxes of 64 x 64, swizzled by 128 bytes.
#include "../../common/hopper/tma.cuh"
#include "../../common/hopper/wgmma.cuh"
#include "slices.cuh"

constexpr int kRows = 128, kCols = 128;
constexpr int kThreads = 128;

struct alignas(1024) Stage {
    unsigned short a[kRows * kDepth];
    unsigned short b[kCols * kDepth];  // boxes of 64 columns
};

__global__ void __launch_bounds__(kThreads, 3)
    hgemm_wgmma(const __grid_constant__ TensorMap A,
                const __grid_constant__ TensorMap B, float* __restrict__ C, int M,
                int N, int K)
{
    extern __shared__ __align__(1024) Stage stage[];
    __shared__ Barrier full;
    if (threadIdx.x == 0) {
        mbarrier_init(&full, 1);
        fence_mbarrier_init();
    }
    __syncthreads();
    const int2 first = place_of_tile<kRows, kCols>(blockIdx.x, M, N);
    float d[kRows / 64][kCols / 2];
    for (int i = 0; i < slices_of(K); ++i) {
        if (threadIdx.x == 0) {
            mbarrier_arrive_expect(&full, sizeof(Stage));
            tma_load(stage->a, A, i * kDepth, first.x, &full);
            for (int j = 0; j < kCols; j += 64)
                tma_load(stage->b + j * kDepth, B, first.y + j, i * kDepth, &full);
        }
        mbarrier_wait(&full, i % 2);
        wgmma_fence();
#pragma unroll
        for (int r = 0; r < kRows / 64; ++r) {
            const Descriptor a = describe_rows_of_k(stage->a + r * 64 * kDepth);
            const Descriptor b = describe_rows_of_n(stage->b, kBoxBytes);
#pragma unroll
            for (int s = 0; s < kDepth / 16; ++s)
                wgmma_f16_rows_of_n(d[r], a + 2 * s, b + 128 * s, i + s > 0);
        }
        wgmma_commit();
        wgmma_wait<0>();
        __syncthreads();  // all four warps have finished with the tiles
    }
#pragma unroll
    for (int r = 0; r < kRows / 64; ++r)
        store_rows<kCols>(C, d[r], first.x + r * 64, first.y, M, N);
}
