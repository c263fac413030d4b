// Exhibit: our first version of the rung wgmma, which waits only for the previous slab,
// as dense kernels do. On an H200, its results are wrong.
#include "../sparse_gemm/tile.cuh"

constexpr int kStages = 5;

extern "C" __global__ void __launch_bounds__(kThreads, 1)
    sparse_wgmma(const __grid_constant__ TensorMap values,
                 const unsigned* __restrict__ metadata,
                 const __grid_constant__ TensorMap B, float* __restrict__ C, int m,
                 int n, int k)
{
    extern __shared__ __align__(1024) Stage ring[];
    __shared__ Barrier full[kStages], empty[kStages];
    if (threadIdx.x == 0) {
        for (int s = 0; s < kStages; ++s) {
            mbarrier_init(&full[s], 1);
            mbarrier_init(&empty[s], kReaders);
        }
        fence_mbarrier_init();
    }
    __syncthreads();
    const int across = (n + kWidth - 1) / kWidth, slabs = k / kSlab;
    const int y = blockIdx.x / across * kHeight, x = blockIdx.x % across * kWidth;
    if (threadIdx.x < 128) {
        release_registers<40>();
        if (threadIdx.x == 0)
            for (int slab = 0; slab < slabs; ++slab) {
                const int slot = slab % kStages;
                mbarrier_wait(&empty[slot], slab / kStages % 2 ^ 1);
                Stage& stage = ring[slot];
                load_sparse(stage, values, metadata, slab, y, m, &full[slot]);
                for (int i = 0; i < kWidth / kBox; ++i)
                    tma_load(stage.b + i * kBox * kSlab, B, x + i * kBox, slab * kSlab,
                             &full[slot]);
            }
    } else {
        claim_registers<232>();
        const int consumer = threadIdx.x / 128 - 1, held = sixteens(y, m);
        float d[kWidth / 2];
        for (int slab = 0; slab < slabs; ++slab) {
            const int slot = slab % kStages;
            mbarrier_wait(&full[slot], slab / kStages % 2);
            const int tile = consumer * 4 + threadIdx.x % 128 / 32;
            const unsigned e =
                tile < held ? ring[slot].metadata[tile * kWords + threadIdx.x % 32]
                            : kAnyMetadata;
            const Descriptor a =
                describe_stored_rows(ring[slot].values + consumer * 64 * kSlab / 2);
            const Descriptor b = describe_rows_of_n(ring[slot].b, kBoxBytes);
            wgmma_fence();
            wgmma_sparse_f16_rows_of_n<0>(d, a, b, e, slab > 0);
            wgmma_sparse_f16_rows_of_n<1>(d, a + 2, b + 256, e, true);
            wgmma_commit();
            wgmma_wait<1>();  // the previous slab is done, and its slot is free
            __syncwarp();
            if (slab > 0 && threadIdx.x % 32 == 0)
                mbarrier_arrive(&empty[(slab - 1) % kStages]);
        }
        wgmma_wait<0>();
        store_sums(C, d, y + consumer * 64, x, m, n);
    }
}
