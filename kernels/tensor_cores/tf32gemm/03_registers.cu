// Idea: compute C' = B' A', and load B's fragments into registers, transposed.
// From the rung before: no pass over B. The first factor of wgmma may come from
// registers, in any order; the second is A, whose rows run along k.
// Requires: sm_90a; clusters of two blocks of kThreads threads; shared memory for
// kStages Stages; tensor maps of A, boxes of kRows / 2 x 32, and of B, boxes of 32 x 32,
// swizzled by 128 bytes; n is a multiple of 4.
#include "../../common/hopper/cluster.cuh"
#include "../../common/hopper/tma.cuh"
#include "../../common/hopper/wgmma.cuh"
#include "../place.cuh"
#include "to_tf32.cuh"

constexpr int kRows = 256, kCols = 128, kDepth = 32, kStages = 4;
constexpr int kThreads = 384;
constexpr int kConsumers = 2, kCluster = 2;

struct alignas(1024) Stage {
    float a[kRows * kDepth];
    float b[kCols * kDepth];  // boxes of 32 columns
};

// What a lane holds of a slice of B: two columns, in four rows of k twice.
struct Fragments {
    float2 low[kDepth / 8], high[kDepth / 8];

    // Loads from a box: rows of 128 bytes, whose pieces of 16 bytes are swizzled. `low`
    // and `high` are the lane's places in rows t and t + 4 of eight.
    __device__ __forceinline__ void load(const float* low_row, const float* high_row)
    {
#pragma unroll
        for (int s = 0; s < kDepth / 8; ++s) {
            low[s] = *reinterpret_cast<const float2*>(low_row + s * 256);
            high[s] = *reinterpret_cast<const float2*>(high_row + s * 256);
        }
    }
};

__global__ void __cluster_dims__(kCluster) __launch_bounds__(kThreads, 1)
    tf32gemm_registers(const __grid_constant__ TensorMap A,
                        const __grid_constant__ TensorMap B, float* __restrict__ C,
                        int M, int N, int K)
{
    extern __shared__ __align__(1024) Stage stages[];
    __shared__ Barrier full[kStages], empty[kStages];
    if (threadIdx.x == 0) {
        for (int s = 0; s < kStages; ++s) {
            mbarrier_init(&full[s], 1);
            mbarrier_init(&empty[s], kCluster * kConsumers * 4);
        }
        fence_mbarrier_init();
    }
    cluster_sync();
    const unsigned rank = cluster_rank();
    const int slices = (K + kDepth - 1) / kDepth;
    const int pairs = tiles_of<kRows, kCluster * kCols>(M, N);
    int slot = 0, phase = 0;
    if (threadIdx.x < 128) {
        release_registers<40>();
        const int end = threadIdx.x == 0 ? pairs : 0;
        for (int t = blockIdx.x / kCluster; t < end; t += gridDim.x / kCluster) {
            const int2 first = place_of_tile<kRows, kCluster * kCols>(t, M, N);
            for (int i = 0; i < slices; ++i) {
                Stage& stage = stages[slot];
                mbarrier_wait_cluster(&empty[slot], phase ^ 1);
                mbarrier_arrive_expect(&full[slot], sizeof(Stage));
                constexpr int kShare = kRows / kCluster;
                tma_load_multicast(stage.a + rank * kShare * kDepth, A, i * kDepth,
                                   first.x + rank * kShare, &full[slot],
                                   (1 << kCluster) - 1);
                for (int j = 0; j < kCols; j += 32)
                    tma_load(stage.b + j * kDepth, B, first.y + rank * kCols + j,
                             i * kDepth, &full[slot]);
                if (++slot == kStages) slot = 0, phase ^= 1;
            }
        }
    } else {
        claim_registers<232>();
        const int group = threadIdx.x / 128 - 1, warp = threadIdx.x % 128 / 32;
        const int lane = threadIdx.x % 32, g = lane / 4, t4 = lane % 4;
        // A warp has 16 columns, of which a lane takes two: pieces c and c + 4 of 16
        // bytes for lanes 0 to 15, so that four rows of both lie in different banks.
        const int piece = warp % 2 * 2 + g / 4 + g / 2 % 2 * 4;
        const int box = group * 2 + warp / 2;
        const int low = box * 32 * kDepth + t4 * 32 + (piece ^ t4) * 4 + g % 2 * 2;
        const int high =
            box * 32 * kDepth + (t4 + 4) * 32 + (piece ^ (t4 + 4)) * 4 + g % 2 * 2;
        for (int t = blockIdx.x / kCluster; t < pairs; t += gridDim.x / kCluster) {
            const int2 first = place_of_tile<kRows, kCluster * kCols>(t, M, N);
            float d[kRows / 2];
            Fragments b;
            mbarrier_wait(&full[slot], phase);
            b.load(stages[slot].b + low, stages[slot].b + high);
            for (int i = 0; i < slices; ++i) {
                unsigned held[kDepth / 8][4];
#pragma unroll
                for (int s = 0; s < kDepth / 8; ++s) {
                    held[s][0] = to_tf32(b.low[s].x), held[s][1] = to_tf32(b.low[s].y);
                    held[s][2] = to_tf32(b.high[s].x), held[s][3] = to_tf32(b.high[s].y);
                }
                const Descriptor a = describe_rows_of_k(stages[slot].a);
                wgmma_fence();
#pragma unroll
                for (int s = 0; s < kDepth / 8; ++s)
                    wgmma_tf32(d, held[s], a + 2 * s, i + s > 0);
                wgmma_commit();
                const int last = slot;
                if (++slot == kStages) slot = 0, phase ^= 1;
                if (i + 1 < slices) {  // loads while the tensor cores multiply
                    mbarrier_wait(&full[slot], phase);
                    b.load(stages[slot].b + low, stages[slot].b + high);
                }
                wgmma_wait<0>();
                __syncwarp();
                if (lane < kCluster) mbarrier_arrive_at(&empty[last], lane);
            }
            const int x = first.y + rank * kCols + box * 32 + piece * 4 + g % 2 * 2;
            const int y = first.x + 2 * t4;
            float* const to = C + static_cast<size_t>(y) * N + x;
#pragma unroll
            for (int j = 0; j < kRows / 8; ++j)
#pragma unroll
                for (int e = 0; e < 2; ++e)
                    store_if(x < N && y + 8 * j + e < M,
                             to + static_cast<size_t>(8 * j + e) * N, d[4 * j + e],
                             d[4 * j + 2 + e]);
        }
    }
    cluster_sync();  // no block ends while the other still signals to it
}
