// The product for few rows: one launch reads B once, through the copy engine.
#pragma once

#include "../../common/hopper/cluster.cuh"
#include "../../common/hopper/tma.cuh"
#include "../../common/hopper/wgmma.cuh"
#include "add_share.cuh"
#include "few_stage.cuh"

// Computes tiles of 32 rows and 64 columns. The `kParts` blocks of a cluster divide k
// of a tile, and the warpgroups of a block divide its part.
template <int kParts>
__global__ void __cluster_dims__(kParts) __launch_bounds__(kThreads, 1)
multiply_few(const __grid_constant__ TensorMap a_boxes,
             const __grid_constant__ TensorMap b_boxes, int m, int n, int k,
             float alpha, const float* A, int lda, const float* B, int ldb, float beta,
             float* C, int ldc)
{
    extern __shared__ __align__(1024) Stage rings[];
    __shared__ Barrier barriers[kGroups][kStages];
    __shared__ float factors[kGroups][2][4];
    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32 % 4;
    const int group = thread / 128, g = lane / 4, t = lane % 4;
    const TilePart mine = find_part<kParts, kTileColumns>(m);
    const int slices = (k + kDepth - 1) / kDepth;
    constexpr int kShares = kParts * kGroups;
    const long long share = mine.part * kGroups + group;
    const int first = share * slices / kShares;
    const int count = (share + 1) * slices / kShares - first;
    Stage* ring = rings + group * kStages;
    Barrier* full = barriers[group];
    const auto load = [&](int i) {
        const int slot = i % kStages, at = (first + i) * kDepth;
        mbarrier_arrive_expect(&full[slot], sizeof(Stage) - sizeof(Stage::a_low));
        tma_load(ring[slot].b[0], b_boxes, mine.x, at, &full[slot]);
        tma_load(ring[slot].b[1], b_boxes, mine.x + 32, at, &full[slot]);
        tma_load(ring[slot].a, a_boxes, at, mine.y, &full[slot]);
    };
    if (thread % 128 == 0) {
        for (int s = 0; s < kStages; ++s) mbarrier_init(&full[s], 1);
        fence_mbarrier_init();
        for (int i = 0; i < min(count, kStages); ++i) load(i);
    }
    sync_warpgroup(1 + group);

    // Columns of B are rows of the fragments: a lane has `own` and `own` + 8.
    const int own = warp * 16 + g;
    float totals[16] = {};
#pragma unroll 1
    for (int i = 0; i < count; ++i) {
        Stage& from = ring[i % kStages];
        mbarrier_wait(&full[i % kStages], i / kStages % 2);
        const float factor = split_a(from.a, lane, warp);
        if (lane == 0) factors[group][i % 2][warp] = factor;
        float values[16];  // by 8 of k, in the order of fragments
#pragma unroll
        for (int j = 0; j < 16; ++j) {
            const int row = j / 4 * 8 + 2 * t + j / 2 % 2, column = own + j % 2 * 8;
            const int quad = column % 32 / 4 ^ row % 8;
            values[j] = from.b[column / 32][row * 32 + quad * 4 + column % 4];
        }
        fence_proxy_async();
        sync_warpgroup(1 + group);  // A is split; the previous stage has been read
        const int next = i - 1 + kStages;
        if (thread % 128 == 0 && i > 0 && next < count) load(next);
        const float unit = raise_tiny(values) ? kDown : 1.0f;
        unsigned high[4][4], low[4][4];
#pragma unroll
        for (int s = 0; s < 4; ++s) {
            const float lower = factors[group][i % 2][s];
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                float value = values[4 * s + j];
                if (lower != 1.0f) value = multiply_exactly(value, lower);
                const Parts parts = split(value);
                high[s][j] = parts.high;
                low[s][j] = parts.low;
                // Keeps the split before the fence, not between products.
                asm volatile("" : "+r"(high[s][j]), "+r"(low[s][j]));
            }
        }
        const Descriptor both = describe_rows_of_k(from.a);  // then its low parts
        float sums[32];
        wgmma_fence();
#pragma unroll
        for (int s = 0; s < 4; ++s) {
            wgmma_tf32(sums, low[s], both + 2 * s, s > 0);
            wgmma_tf32(sums, high[s], both + 2 * s, true);
        }
        wgmma_commit();
        wgmma_wait<0>();
#pragma unroll
        for (int j = 0; j < 16; ++j) {
            totals[j] = multiply_add(sums[16 + j], unit, totals[j]);
            totals[j] = multiply_add(sums[j], unit, totals[j]);
        }
    }
    sync_warpgroup(1 + group);  // sums replace the stages
    float* to_sums = ring[0].b[0];
#pragma unroll
    for (int j = 0; j < 16; ++j) {
        const int row = j / 4 * 8 + 2 * t + j % 2, column = own + j / 2 % 2 * 8;
        to_sums[row * kSumPitch + column] = totals[j];
    }
    if constexpr (kParts > 1) {
        cluster_sync();
    } else {
        __syncthreads();
    }
    // Each block adds up a share of the tile.
    const Result to{m, n, k, alpha, A, lda, B, ldb, beta, C, ldc, nullptr, nullptr};
    const auto sums_of = [&](int i, int row, int column) {
        const float* sums = rings[i % kGroups * kStages].b[0];
        if constexpr (kParts > 1) sums = at_rank(sums, i / kGroups);
        return sums + (row * kSumPitch + column);
    };
    add_share<kTileColumns, kParts, kParts * kGroups, kThreads>(
        to, sums_of, mine.part, mine.y, mine.x);
    if constexpr (kParts > 1) cluster_sync();  // others have read this block's sums
}
