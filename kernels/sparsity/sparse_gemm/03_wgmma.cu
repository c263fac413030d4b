// Idea: the copy engine fills the ring, and warpgroups multiply from shared memory.
// From the rung before: wgmma.sp reads A and B from shared memory; only metadata are
// loaded into registers. A producer copies up to kStages slabs ahead of two consumers.
// Requires: m a multiple of 16, n of 8, k of 64; blocks of kThreads threads, kStages
// stages of shared memory; sm_90a.
#include "tile.cuh"

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
            add_slab(d, ring[slot], consumer, held, slab > 0);
            __syncwarp();  // all lanes have read their metadata
            if (threadIdx.x % 32 == 0) mbarrier_arrive(&empty[slot]);
        }
        store_sums(C, d, y + consumer * 64, x, m, n);
    }
}
