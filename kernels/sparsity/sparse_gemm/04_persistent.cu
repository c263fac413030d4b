// Idea: persistent blocks, in clusters that share B.
// From the rung before: two blocks, one below the other, each multicast half of a tile
// of B to both. One block per SM; the producer fills the next tile's slabs while the
// consumers still write. Tiles are visited in groups of kGroup rows, for the L2 cache.
// Requires: m a multiple of 16, n of 8, k of 64; clusters of kCluster blocks of
// kThreads threads, kStages stages of shared memory; sm_90a.
#include "../../common/hopper/cluster.cuh"
#include "tile.cuh"

constexpr int kStages = 5;
constexpr int kCluster = 2;
constexpr int kGroup = 8;  // rows per group, in units of a cluster's tiles

// Row and column of tile `index` among `down` x `across`, in groups of kGroup rows.
__device__ __forceinline__ int2 walk(int index, int down, int across)
{
    const int group = index / (kGroup * across), within = index % (kGroup * across);
    const int high = min(kGroup, down - group * kGroup);
    return {group * kGroup + within % high, within / high};
}

extern "C" __global__ void __cluster_dims__(kCluster, 1, 1)
    __launch_bounds__(kThreads, 1)
        sparse_persistent(const __grid_constant__ TensorMap values,
                          const unsigned* __restrict__ metadata,
                          const __grid_constant__ TensorMap B, float* __restrict__ C,
                          int m, int n, int k)
{
    extern __shared__ __align__(1024) Stage ring[];
    __shared__ Barrier full[kStages], empty[kStages];
    const int rank = cluster_rank();
    if (threadIdx.x == 0) {
        for (int s = 0; s < kStages; ++s) {
            mbarrier_init(&full[s], 1);
            mbarrier_init(&empty[s], kReaders * kCluster);
        }
        fence_mbarrier_init();
    }
    cluster_sync();
    const int down = (m + kCluster * kHeight - 1) / (kCluster * kHeight);
    const int across = (n + kWidth - 1) / kWidth, slabs = k / kSlab;
    int slot = 0, phase = 0;
    const auto advance = [&] {
        if (++slot == kStages) slot = 0, phase ^= 1;
    };
    const int step = gridDim.x / kCluster;
    if (threadIdx.x < 128) {
        release_registers<40>();
        if (threadIdx.x == 0)
            for (int i = blockIdx.x / kCluster; i < down * across; i += step) {
                const int2 at = walk(i, down, across);
                const int y = (at.x * kCluster + rank) * kHeight, x = at.y * kWidth;
                for (int slab = 0; slab < slabs; ++slab, advance()) {
                    mbarrier_wait(&empty[slot], phase ^ 1);
                    Stage& stage = ring[slot];
                    load_sparse(stage, values, metadata, slab, y, m, &full[slot]);
                    constexpr int kOwn = kWidth / kBox / kCluster;
                    for (int j = rank * kOwn; j < (rank + 1) * kOwn; ++j)
                        tma_load_multicast(stage.b + j * kBox * kSlab, B, x + j * kBox,
                                           slab * kSlab, &full[slot],
                                           (1 << kCluster) - 1);
                }
            }
    } else {
        claim_registers<232>();
        const int consumer = threadIdx.x / 128 - 1, lane = threadIdx.x % 32;
        for (int i = blockIdx.x / kCluster; i < down * across; i += step) {
            const int2 at = walk(i, down, across);
            const int y = (at.x * kCluster + rank) * kHeight, held = sixteens(y, m);
            float d[kWidth / 2];
            for (int slab = 0; slab < slabs; ++slab, advance()) {
                mbarrier_wait(&full[slot], phase);
                add_slab(d, ring[slot], consumer, held, slab > 0);
                __syncwarp();  // all lanes have read their metadata
                if (lane < kCluster) mbarrier_arrive_at(&empty[slot], lane);
            }
            store_sums(C, d, y + consumer * 64, at.y * kWidth, m, n);
        }
    }
    cluster_sync();  // no block ends while the other may still arrive at its barriers
}
