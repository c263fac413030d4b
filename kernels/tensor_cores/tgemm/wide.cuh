// The product for few rows in wide tiles: the blocks of a cluster divide k.
#pragma once

#include "../../common/hopper/cluster.cuh"
#include "add_share.cuh"
#include "wide_ring.cuh"

constexpr int kConsumers = 5;  // warpgroups
using Ring = WideRing<kConsumers>;
constexpr int kTileColumns = Ring::kColumns, kProducer = Ring::kProducer;
constexpr int kSumPitch = kTileColumns + 4;  // with it, lanes store to 32 banks
static_assert(kTileRows * kSumPitch * sizeof(float) <= kStages * sizeof(Ring::Stage),
              "the ring has room for the sums");

__device__ __forceinline__ void sync_consumers()
{
    asm volatile("bar.sync 1, %0;" ::"n"(kProducer) : "memory");
}

// Computes tiles of 32 rows and 320 columns, each with a cluster of `kParts` blocks.
template <int kParts>
__global__ void __cluster_dims__(kParts) __launch_bounds__(Ring::kThreads, 1)
multiply_wide(const __grid_constant__ TensorMap a_boxes,
              const __grid_constant__ TensorMap b_boxes, int m, int n, int k,
              float alpha, const float* A, int lda, const float* B, int ldb, float beta,
              float* C, int ldc)
{
    extern __shared__ __align__(1024) Ring::Stage stages[];
    __shared__ Slice slices[kStages];
    const int lane = threadIdx.x % 32;
    const int warp = __shfl_sync(0xffffffffu, threadIdx.x / 32, 0);
    const TilePart mine = find_part<kParts, kTileColumns>(m);
    const long long all = (k + kDepth - 1) / kDepth;
    const int first = mine.part * all / kParts;
    const int count = (mine.part + 1) * all / kParts - first;
    const Ring ring = {a_boxes, b_boxes, stages, slices, mine.y,
                       mine.x,  first,   1,      count};
    ring.begin();
    if (warp >= kProducer / 32) {
        ring.feed(warp, lane);
        if constexpr (kParts > 1) cluster_sync();
    } else {
        float totals[16];
        ring.multiply(totals, warp, lane);
        float* to_sums = stages[0].b[0];
        sync_consumers();  // all reads of the ring are done: sums replace the stages
#pragma unroll
        for (int j = 0; j < 16; ++j) {
            const int row = j / 4 * 8 + lane % 4 * 2 + j % 2;
            const int column = warp * 16 + lane / 4 + j / 2 % 2 * 8;
            to_sums[row * kSumPitch + column] = totals[j];
        }
        if constexpr (kParts > 1) {
            cluster_sync();
        } else {
            sync_consumers();
        }
        const Result to{m, n, k, alpha, A, lda, B, ldb, beta, C, ldc, nullptr, nullptr};
        const auto sums_of = [&](int i, int row, int column) {
            const float* sums = to_sums + row * kSumPitch + column;
            if constexpr (kParts > 1) sums = at_rank(sums, i);
            return sums;
        };
        add_share<kTileColumns, kParts, kParts, kProducer>(
            to, sums_of, mine.part, mine.y, mine.x);
    }
    if constexpr (kParts > 1) cluster_sync();  // others have read this block's sums
}
