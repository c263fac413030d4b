// The fused product: a producer warp copies tiles of A in float32 and of B's two parts
// to a ring; two warpgroups split A in registers and multiply 64 x 256 each.
#pragma once

#include "../../common/hopper/cluster.cuh"
#include "../../common/hopper/tma.cuh"
#include "../../common/hopper/wgmma.cuh"
#include "place.cuh"
#include "prepare.cuh"
#include "result.cuh"

constexpr int kTileRows = 128, kTileColumns = 256, kSlice = 32, kStages = 4;
constexpr int kCluster = 2;         // blocks, one below the other, that share B's tiles
constexpr int kBox = kSlice * 128;  // bytes of a box of B: 64 columns
constexpr int kBlockThreads = 384;

struct alignas(1024) Stage {
    float a[kTileRows * kSlice];
    unsigned short high[kTileColumns * kSlice];
    unsigned short low[kTileColumns * kSlice];
};

extern "C" __global__ void __cluster_dims__(kCluster, 1, 1)
__launch_bounds__(kBlockThreads, 1)
multiply(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b_high,
         const __grid_constant__ TensorMap b_low, int m, int n, int k, float alpha,
         const float* A, int lda, const float* B, int ldb, float beta, float* C,
         int ldc, const int* row_exponents, const int* column_exponents)
{
    extern __shared__ __align__(1024) Stage stages[];
    __shared__ Barrier full[kStages], empty[kStages];
    const int rank = cluster_rank();
    const int thread = threadIdx.x;
    if (thread == 0) {
        for (int s = 0; s < kStages; ++s) {
            mbarrier_init(&full[s], 1);
            mbarrier_init(&empty[s], 8 * kCluster);  // from each consuming warp
        }
        fence_mbarrier_init();
    }
    cluster_sync();
    wait_for_launch_before();
    const int height = kTileRows * kCluster;
    const int rows = (m + height - 1) / height;
    const int columns = (n + kTileColumns - 1) / kTileColumns;
    const int slices = (k + kSlice - 1) / kSlice;
    int slot = 0, phase = 0;
    const auto advance = [&] {
        if (++slot == kStages) {
            slot = 0;
            phase ^= 1;
        }
    };
    if (thread < 128) {
        release_registers<24>();
        for (int t = blockIdx.x / kCluster; thread == 0 && t < rows * columns;
             t += gridDim.x / kCluster) {
            const int2 at = place(t, rows, columns);
            const int y = at.x * height + rank * kTileRows, x = at.y * kTileColumns;
            for (int i = 0; i < slices; ++i) {
                Stage& to = stages[slot];
                Barrier* arrived = &full[slot];
                mbarrier_wait(&empty[slot], phase ^ 1);
                mbarrier_arrive_expect(arrived, sizeof(Stage));
                tma_load(to.a, a, i * kSlice, y, arrived);
#pragma unroll
                for (int j = 0; j < 4 / kCluster; ++j) {
                    const int box = rank * (4 / kCluster) + j;
                    const int offset = box * 64 * kSlice, column = x + 64 * box;
                    tma_load_multicast(to.high + offset, b_high, column, i * kSlice,
                                       arrived, (1 << kCluster) - 1);
                    tma_load_multicast(to.low + offset, b_low, column, i * kSlice,
                                       arrived, (1 << kCluster) - 1);
                }
                advance();
            }
        }
    } else {
        claim_registers<240>();
        const int lane = thread % 32, warp = thread / 32 - 4;
        // The tile's row that this lane uses as row lane / 4 of its fragments: in this
        // order, lanes that read at the same time read all banks.
        const int own = warp * 16 + lane / 8 + lane / 4 % 2 * 4;
        const Result to{m,   n,    k, alpha, A,   lda,           B,
                        ldb, beta, C, ldc,   row_exponents, column_exponents};
        for (int t = blockIdx.x / kCluster; t < rows * columns;
             t += gridDim.x / kCluster) {
            const int2 at = place(t, rows, columns);
            const int y = at.x * height + rank * kTileRows + own;
            const float above = y < m ? scale_of(row_exponents[y]) : 1.0f;
            const float below = y + 8 < m ? scale_of(row_exponents[y + 8]) : 1.0f;
            float totals[2][64] = {};
            for (int i = 0; i < slices; ++i) {
                const Stage& from = stages[slot];
                mbarrier_wait(&full[slot], phase);
                unsigned high[2][4], low[2][4];
#pragma unroll
                for (int s = 0; s < 2; ++s) {
                    const int quad = (4 * s + lane % 4) ^ (own % 8);
                    const float* row = &from.a[own * kSlice + quad * 4];
                    const float4 v = *reinterpret_cast<const float4*>(row);
                    const float4 w = *reinterpret_cast<const float4*>(row + 8 * kSlice);
                    const auto split = [](float x, float y, float scale, unsigned& h,
                                          unsigned& l) {
                        split_pair(multiply_exactly(x, scale),
                                   multiply_exactly(y, scale), h, l);
                    };
                    split(v.x, v.y, above, high[s][0], low[s][0]);
                    split(w.x, w.y, below, high[s][1], low[s][1]);
                    split(v.z, v.w, above, high[s][2], low[s][2]);
                    split(w.z, w.w, below, high[s][3], low[s][3]);
                }
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    float sums[64];
                    const int offset = half * 128 * kSlice;
                    const Descriptor b = describe_rows_of_n(from.high + offset, kBox);
                    const Descriptor c = describe_rows_of_n(from.low + offset, kBox);
                    wgmma_fence();
#pragma unroll
                    for (int s = 0; s < 2; ++s) {
                        wgmma_f16_rows_of_n(sums, low[s], b + 128 * s, s > 0);
                        wgmma_f16_rows_of_n(sums, high[s], c + 128 * s, true);
                        wgmma_f16_rows_of_n(sums, high[s], b + 128 * s, true);
                    }
                    wgmma_commit();
                    wgmma_wait<0>();
                    if (half == 1) {
                        __syncwarp();
                        if (lane < kCluster) mbarrier_arrive_at(&empty[slot], lane);
                    }
#pragma unroll
                    for (int j = 0; j < 64; ++j) totals[half][j] += sums[j];
                }
                advance();
            }
            const int x = at.y * kTileColumns + lane % 4 * 2;
            store(to, y, x, totals[0]);
            store(to, y, x + 128, totals[1]);
        }
    }
    cluster_sync();
}
