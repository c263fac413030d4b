// The product for few rows in wide tiles: the blocks of a cluster divide k.
#pragma once

#include "../../common/hopper/cluster.cuh"
#include "../../common/hopper/tma.cuh"
#include "../../common/hopper/wgmma_narrow.cuh"
#include "mend.cuh"
#include "tf32_parts.cuh"

constexpr int kConsumers = 5;  // warpgroups that multiply, 64 columns each
constexpr int kTileRows = 32, kTileColumns = 64 * kConsumers, kDepth = 32;
constexpr int kStages = 4, kProducer = 128 * kConsumers, kThreads = kProducer + 128;
constexpr int kSplitters = 2;                // warps
constexpr int kSumPitch = kTileColumns + 4;  // with it, lanes store to 32 banks

// Swizzled boxes of 32 x 32 floats. Splitting A replaces it by its high parts, with low
// parts behind them.
struct alignas(1024) Stage {
    float b[kTileColumns / 32][kDepth * 32];
    float a[kTileRows * kDepth];
    float a_low[kTileRows * kDepth];
};
struct Slice {
    Barrier arrived, full, empty;  // A copied; A split and B copied; both read
    float lower[4];                // factors of B, one for every 8 of k
};
static_assert(kTileRows * kSumPitch * sizeof(float) <= kStages * sizeof(Stage),
              "the ring has room for the sums");

// Tells whether all numbers of the warp are below 2^-95, as in raise_tiny.
__device__ __forceinline__ bool is_tiny(const float (&values)[16])
{
    unsigned any = 0;
#pragma unroll
    for (int i = 0; i < 16; ++i) any |= __float_as_uint(values[i]);
    return __all_sync(0xffffffffu, any << 1 < 32u << 24);
}

// Splits 8 of k of A, a row per lane, into high parts and, behind the tile, low parts:
// first of even k, then of odd k. Returns the factor for B that undoes scaling.
__device__ __forceinline__ float split_rows_of_a(Stage& stage, int row, int eighth)
{
    float4* quads[2];
    float values[8];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const int quad = (2 * eighth + i) ^ row % 8;
        quads[i] = reinterpret_cast<float4*>(stage.a + row * kDepth) + quad;
        reinterpret_cast<float4*>(values)[i] = *quads[i];
    }
    const bool raised = raise_tiny(values);
    float high[8], low[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const Parts parts = split(values[i]);
        high[i % 2 * 4 + i / 2] = __uint_as_float(parts.high);
        low[i % 2 * 4 + i / 2] = __uint_as_float(parts.low);
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        *quads[i] = reinterpret_cast<const float4*>(high)[i];
        quads[i][kTileRows * kDepth / 4] = reinterpret_cast<const float4*>(low)[i];
    }
    return raised ? kDown : 1.0f;
}

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

// Adds up all blocks' sums of a share of the tile, and stores the share.
template <int kParts>
__device__ __forceinline__ void add_share(const Result& to, const float* sums, int part,
                                          int y, int x)
{
    constexpr int kAll = kTileRows * kTileColumns / 4;
    constexpr int kQuads = (kAll / 32 + kParts - 1) / kParts * 32;  // whole warps
    const bool quads = to.n % 4 == 0 && to.ldc % 4 == 0 &&
                       reinterpret_cast<unsigned long long>(to.C) % 16 == 0;
    for (int q = threadIdx.x; q < kQuads; q += kProducer) {
        const int at = part * kQuads + q;
        if (at >= kAll) return;
        const int row = at / (kTileColumns / 4), column = at % (kTileColumns / 4) * 4;
        float values[4] = {};
#pragma unroll
        for (int i = 0; i < kParts; ++i) {
            const float* from = sums + row * kSumPitch + column;
            if constexpr (kParts > 1) from = at_rank(from, i);
            const float4 v = *reinterpret_cast<const float4*>(from);
            const float adds[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                // Keeps a sum below 2^-126; `+` would flush it to zero.
                values[j] = multiply_add(adds[j], 1.0f, values[j]);
            }
        }
        mend(to, y + row, x + column, values);
        if (quads && to.beta == 0.0f) {
            if (y + row < to.m && x + column < to.n) {
                const size_t start = static_cast<size_t>(y + row) * to.ldc;
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    values[j] = multiply_exactly(to.alpha, values[j]);
                }
                *reinterpret_cast<float4*>(to.C + start + x + column) =
                    make_float4(values[0], values[1], values[2], values[3]);
            }
        } else {
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const bool inside = y + row < to.m && x + column + j < to.n;
                put(to, y + row, x + column + j, values[j], inside);
            }
        }
    }
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
                    const float lower = split_rows_of_a(ring[i % kStages], lane, e);
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
        add_share<kParts>(to, to_sums, part, y, x);
    }
    if constexpr (kParts > 1) cluster_sync();  // others have read this block's sums
}
