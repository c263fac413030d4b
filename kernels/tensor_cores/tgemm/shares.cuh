// The product for few rows by blocks that are in no cluster: all blocks of a tile meet
// in memory, and each adds up a share of the sums.
#pragma once

#include "../../common/meeting.cuh"
#include "mend.cuh"
#include "wide_ring.cuh"

constexpr int kConsumers = 4;  // warpgroups that multiply, 64 columns each
constexpr int kPairs = 8;   // of a thread's sums: two rows of a column each
constexpr int kMostTiles = 66;  // of several blocks, on 132 SMs
using Ring = WideRing<kConsumers>;

// Blocks that have met, by tile and warpgroup.
__device__ unsigned meetings[kMostTiles][kConsumers];

__device__ __forceinline__ void sync_group(int group)
{
    asm volatile("bar.sync %0, 128;" ::"r"(1 + group) : "memory");
}

// Computes tiles of 32 rows and 256 columns, each with `kParts` blocks. They take turns
// in k, and so read neighbouring rows of B at the same time.
template <int kParts>
__global__ void __launch_bounds__(Ring::kThreads, 1)
multiply_shares(const __grid_constant__ TensorMap a_boxes,
                const __grid_constant__ TensorMap b_boxes, int m, int n, int k,
                float alpha, const float* A, int lda, const float* B, int ldb,
                float beta, float* C, int ldc, float2* partial)
{
    extern __shared__ __align__(1024) Ring::Stage stages[];
    __shared__ Slice slices[kStages];
    const int lane = threadIdx.x % 32;
    const int warp = __shfl_sync(0xffffffffu, threadIdx.x / 32, 0);
    const TilePart mine = find_part<kParts, Ring::kColumns>(m);
    const int part = mine.part, tile = mine.tile;
    const int all = (k + kDepth - 1) / kDepth;
    const int count = (all - part + kParts - 1) / kParts;
    const Ring ring = {a_boxes, b_boxes, stages, slices, mine.y,
                       mine.x,  part,    kParts, count};
    ring.begin();
    if (warp >= Ring::kProducer / 32) {
        ring.feed(warp, lane);
        return;
    }
    float totals[16];
    ring.multiply(totals, warp, lane);
    const int group = warp / 4, thread = threadIdx.x % 128;
    unsigned before = 0;
    if (kParts > 1 && thread == 0) before = look_at(&meetings[tile][group]);
    const auto at = [&](int of, int pair) {
        const size_t whose = (size_t{1} * tile * kConsumers + group) * kParts + of;
        return partial + (whose * kPairs + pair) * 128 + thread;
    };
#pragma unroll
    for (int j = 0; j < kPairs; ++j) {
        *at(part, j) = make_float2(totals[2 * j], totals[2 * j + 1]);
    }
    if constexpr (kParts > 1) {
        sync_group(group);
        if (thread == 0) {
            meet_others(&meetings[tile][group], before, kParts, part == 0);
        }
        sync_group(group);
    }
    const Result to{m, n, k, alpha, A, lda, B, ldb, beta, C, ldc, nullptr, nullptr};
#pragma unroll 1
    for (int pair = part; pair < kPairs; pair += kParts) {
        float sums[2] = {};
#pragma unroll
        for (int i = 0; i < kParts; ++i) {
            const float2 more = __ldcg(at(i, pair));
            // Keeps a sum below 2^-126; `+` would flush it to zero.
            sums[0] = multiply_add(more.x, 1.0f, sums[0]);
            sums[1] = multiply_add(more.y, 1.0f, sums[1]);
        }
        const int column = mine.x + warp * 16 + lane / 4 + pair % 2 * 8;
        const int top = mine.y + pair / 2 * 8 + lane % 4 * 2;
        const auto row = [&](int j) { return top + j; };
        mend(to, sums, row, [&](int) { return column; });
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            put(to, row(j), column, sums[j], row(j) < m && column < n);
        }
    }
}
