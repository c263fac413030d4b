// The ring of the rungs with wide tiles: a warp copies, two split A, and warpgroups
// multiply, 64 columns each. Columns of B are the rows of the fragments.
#pragma once

#include "../../common/hopper/tma.cuh"
#include "../../common/hopper/wgmma_narrow.cuh"
#include "few_tile.cuh"

constexpr int kStages = 4;
constexpr int kSplitters = 2;  // warps

struct Slice {
    Barrier arrived, full, empty;  // A copied; A split and B copied; both read
    float lower[4];                // factors of B, one for every 8 of k
};

// Finds the places of a lane's first four numbers in a slice of B. Every next eight
// rows are swizzled alike.
__device__ __forceinline__ void find_columns(int column, int t, int (&places)[4])
{
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        const int row = 2 * t + j / 2, own = column + j % 2 * 8;
        const int quad = own % 32 / 4 ^ row;
        places[j] = own / 32 * (kDepth * 32) + row * 32 + quad * 4 + own % 4;
    }
}

// A block's ring, for a tile that begins at (y, x), and `count` slices of k: every
// `step`-th from `first` on.
template <int kConsumers> struct WideRing {
    static constexpr int kColumns = 64 * kConsumers, kProducer = 128 * kConsumers;
    static constexpr int kThreads = kProducer + 128;
    using Stage = StageOf<kColumns>;
    const TensorMap &a_boxes, &b_boxes;
    Stage* ring;
    Slice* slices;
    int y, x, first, step, count;

    __device__ __forceinline__ void copy(int i) const
    {
        Stage& to = ring[i % kStages];
        Slice& slice = slices[i % kStages];
        const int at = (first + i * step) * kDepth;
        mbarrier_arrive_expect(&slice.arrived, sizeof(to.a));
        tma_load(to.a, a_boxes, at, y, &slice.arrived);
        mbarrier_arrive_expect(&slice.full, sizeof(to.b));
#pragma unroll 1
        for (int box = 0; box < kColumns / 32; ++box) {
            tma_load(to.b[box], b_boxes, x + 32 * box, at, &slice.full);
        }
    }

    // All threads; the first copies are under way when they meet.
    __device__ __forceinline__ void begin() const
    {
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
    }

    // The warps that do not multiply.
    __device__ __forceinline__ void feed(int warp, int lane) const
    {
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
        __syncwarp();  // a barrier of the cluster, for whole warps, may follow
    }

    // The warps that multiply; a lane's sums are of rows 2 t and 2 t + 1 of every 8, in
    // two columns that are eight apart.
    __device__ __forceinline__ void multiply(float (&totals)[16], int warp,
                                             int lane) const
    {
        // At most what the SM has for each warpgroup, the feeding one left out.
        claim_registers<kConsumers == 5 ? 88 : 104>();
        int places[4];
        find_columns(warp * 16 + lane / 4, lane % 4, places);
        float values[16];  // by 8 of k, in the order of fragments
        const auto load = [&](int i) {
            mbarrier_wait(&slices[i % kStages].full, i / kStages % 2);
#pragma unroll
            for (int j = 0; j < 16; ++j) {
                values[j] =
                    ring[i % kStages].b[0][places[j % 4] + j / 4 * 8 * 32];
            }
        };
#pragma unroll
        for (int j = 0; j < 16; ++j) totals[j] = 0.0f;
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
    }
};
