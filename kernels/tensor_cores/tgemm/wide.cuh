// The product for few rows in wide tiles: the blocks of a cluster divide k.
#pragma once

#include "../../common/hopper/cluster.cuh"
#include "../../common/hopper/tma.cuh"
#include "../../common/hopper/wgmma_narrow.cuh"
#include "add_share.cuh"

constexpr int kConsumers = 5;  // warpgroups that multiply, 64 columns each
constexpr int kTileColumns = 64 * kConsumers;
constexpr int kStages = 4, kProducer = 128 * kConsumers, kThreads = kProducer + 128;
constexpr int kSplitters = 2;                // warps
constexpr int kSumPitch = kTileColumns + 4;  // with it, lanes store to 32 banks

using Stage = StageOf<kTileColumns>;
struct Slice {
    Barrier arrived, full, empty;  // A copied; A split and B copied; both read
    float lower[4];                // factors of B, one for every 8 of k
};
static_assert(kTileRows * kSumPitch * sizeof(float) <= kStages * sizeof(Stage),
              "the ring has room for the sums");

// Finds the places of a lane's first four numbers in a slice of B. Every next eight
// rows are swizzled alike. Columns of B are the rows of the fragments.
__device__ __forceinline__ void find_columns(int column, int t, int (&places)[4])
{
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        const int row = 2 * t + j / 2, own = column + j % 2 * 8;
        const int quad = own % 32 / 4 ^ row;
        places[j] = own / 32 * (kDepth * 32) + row * 32 + quad * 4 + own % 4;
    }
}

__device__ __forceinline__ void sync_consumers()
{
    asm volatile("bar.sync 1, %0;" ::"n"(kProducer) : "memory");
}

// Computes tiles of 32 rows and 320 columns, each with a cluster of `kParts` blocks.
template <int kParts>
__global__ void __cluster_dims__(kParts) __launch_bounds__(kThreads, 1)
multiply_wide(const __grid_constant__ TensorMap a_boxes,
              const __grid_constant__ TensorMap b_boxes, int m, int n, int k,
              float alpha, const float* A, int lda, const float* B, int ldb, float beta,
              float* C, int ldc)
{
    extern __shared__ __align__(1024) Stage ring[];
    __shared__ Slice slices[kStages];
    const int lane = threadIdx.x % 32;
    const int warp = __shfl_sync(0xffffffffu, threadIdx.x / 32, 0);
    const int part = blockIdx.x % kParts, tile = blockIdx.x / kParts;
    const int down = (m + kTileRows - 1) / kTileRows;
    const int y = tile % down * kTileRows, x = tile / down * kTileColumns;
    const long long all = (k + kDepth - 1) / kDepth;
    const int first = part * all / kParts;
    const int count = (part + 1) * all / kParts - first;
    const auto copy = [&](int i) {
        Stage& to = ring[i % kStages];
        Slice& slice = slices[i % kStages];
        const int at = (first + i) * kDepth;
        mbarrier_arrive_expect(&slice.arrived, sizeof(to.a));
        tma_load(to.a, a_boxes, at, y, &slice.arrived);
        mbarrier_arrive_expect(&slice.full, sizeof(to.b));
#pragma unroll 1
        for (int box = 0; box < kTileColumns / 32; ++box) {
            tma_load(to.b[box], b_boxes, x + 32 * box, at, &slice.full);
        }
    };
    if (threadIdx.x == kProducer) {
        tma_prefetch(a_boxes);
        tma_prefetch(b_boxes);
        for (int s = 0; s < kStages; ++s) {
            mbarrier_init(&slices[s].arrived, 1);
            mbarrier_init(&slices[s].full, 1 + kSplitters);
            mbarrier_init(&slices[s].empty, kProducer / 32);
        }
        fence_mbarrier_init();
#pragma unroll 1
        for (int i = 0; i < min(count, kStages); ++i) copy(i);
    }
    __syncthreads();
    if (warp >= kProducer / 32) {
        release_registers<40>();
        const int role = warp - kProducer / 32;
        if (role == 0 && lane == 0) {  // starts copies
#pragma unroll 1
            for (int i = kStages; i < count; ++i) {
                mbarrier_wait(&slices[i % kStages].empty, i / kStages % 2 ^ 1);
                copy(i);
            }
        } else if (role >= 1 && role <= kSplitters) {  // splits A
            for (int i = 0; i < count; ++i) {
                Slice& slice = slices[i % kStages];
                mbarrier_wait(&slice.arrived, i / kStages % 2);
                for (int e = role - 1; e < kDepth / 8; e += kSplitters) {
                    const float lower = split_a(ring[i % kStages].a, lane, e);
                    if (lane == 0) slice.lower[e] = lower;
                }
                fence_proxy_async();
                __syncwarp();
                if (lane == 0) mbarrier_arrive(&slice.full);
            }
        }
        __syncwarp();
        if constexpr (kParts > 1) cluster_sync();
    } else {
        claim_registers<88>();
        int places[4];
        find_columns(warp * 16 + lane / 4, lane % 4, places);
        float totals[16] = {}, values[16];  // by 8 of k, in the order of fragments
        const auto load = [&](int i) {
            mbarrier_wait(&slices[i % kStages].full, i / kStages % 2);
#pragma unroll
            for (int j = 0; j < 16; ++j) {
                values[j] =
                    ring[i % kStages].b[0][places[j % 4] + j / 4 * 8 * 32];
            }
        };
        if (count > 0) load(0);
#pragma unroll 1
        for (int i = 0; i < count; ++i) {
            const Stage& from = ring[i % kStages];
            Slice& slice = slices[i % kStages];
            const bool tiny = is_tiny(values);
            const float up = tiny ? kUp : 1.0f, unit = tiny ? kDown : 1.0f;
            unsigned high[4][4], low[4][4];
#pragma unroll
            for (int s = 0; s < 4; ++s) {
                const float factor = slice.lower[s] * up;
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    const Parts parts =
                        split(multiply_exactly(values[4 * s + j], factor));
                    high[s][j] = parts.high;
                    low[s][j] = parts.low;
                    // Keeps the split before the fence, not between products.
                    asm volatile("" : "+r"(high[s][j]), "+r"(low[s][j]));
                }
            }
            const Descriptor tall = describe_rows_of_k(from.a);
            const Descriptor small = describe_rows_of_k(from.a_low);
            float sums[16];
            wgmma_fence();
#pragma unroll
            for (int s = 0; s < 4; ++s) {
                wgmma_tf32(sums, low[s], tall + 2 * s, s > 0);
                wgmma_tf32(sums, high[s], small + 2 * s, true);
            }
#pragma unroll
            for (int s = 0; s < 4; ++s) wgmma_tf32(sums, high[s], tall + 2 * s, true);
            wgmma_commit();
            if (i + 1 < count) load(i + 1);  // while the products run
            wgmma_wait<0>();
            __syncwarp();
            if (lane == 0) mbarrier_arrive(&slice.empty);
#pragma unroll
            for (int j = 0; j < 16; ++j) {
                totals[j] = multiply_add(sums[j], unit, totals[j]);
            }
        }
        float* to_sums = ring[0].b[0];
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
        add_share<kTileColumns, kParts, kParts, kProducer>(to, sums_of, part, y, x);
    }
    if constexpr (kParts > 1) cluster_sync();  // others have read this block's sums
}
