// A product whose two consuming warpgroups take turns at the tensor cores: one
// multiplies while the other adds up. C leaves through the copy engine.
//
// `Left` describes A's layout in a stage: `Element` and `kPitch`, the length of a row
// of a slice; `row_of`, which of 16 rows a lane uses as row lane / 4 of its fragments;
// and `fragments`, which loads the high and low parts of a slice. Each tile has its own
// `Left`.
#pragma once

#include "../../common/hopper/cluster.cuh"
#include "../../common/hopper/tma.cuh"
#include "../../common/hopper/wgmma.cuh"
#include "meet.cuh"
#include "place.cuh"
#include "prepare.cuh"
#include "result.cuh"

constexpr int kTileRows = 128, kTileColumns = 256, kSlice = 32, kStages = 4;
constexpr int kChain = 2;           // slices from one promotion to the next
constexpr int kBox = kSlice * 128;  // bytes of a box of B: 64 columns
constexpr int kBlockThreads = 384, kConsumers = 256;
constexpr int kOutRows = 16, kOutColumns = 32;  // of a box of C that a warp stores

template <class Left> struct alignas(1024) Stage {
    typename Left::Element a[kTileRows * Left::kPitch];
    unsigned short high[kTileColumns * kSlice];
    unsigned short low[kTileColumns * kSlice];
};
template <class Left> struct Shared {
    Stage<Left> stages[kStages];
    float out[kConsumers / 32][2][kOutRows * kOutColumns];
};

template <int kThreads> __device__ __forceinline__ void named_sync(int barrier)
{
    asm volatile("barrier.sync %0, %1;" ::"r"(barrier), "n"(kThreads) : "memory");
}
template <int kThreads> __device__ __forceinline__ void named_arrive(int barrier)
{
    asm volatile("barrier.arrive %0, %1;" ::"r"(barrier), "n"(kThreads) : "memory");
}

// Tells whether a row or column of a warp's 16 x 256 results has an infinity or a NaN.
__device__ __forceinline__ bool any_not_finite(const Result& to, int row, int column)
{
    const int lane = threadIdx.x % 32;
    int largest = to.row_exponents[min(row + lane % 16, to.m - 1)];
#pragma unroll
    for (int i = 0; i < kTileColumns / 32; ++i) {
        const int x = min(column + i * 32 + lane, to.n - 1);
        largest = max(largest, to.column_exponents[x]);
    }
    return __any_sync(0xffffffffu, largest == kNotFinite);
}

// Stores a warp's 16 x 256 results, whose first is at (row, column), box by box. A lane
// has elements of row `inside` of a box, and of the row eight below.
__device__ __forceinline__ void store_boxes(
    const Result& to, const TensorMap& c, int row, int column, int inside,
    float (&out)[2][kOutRows * kOutColumns], const float (&totals)[2][64])
{
    const int lane = threadIdx.x % 32;
    const int e[2] = {to.row_exponents[min(row + inside, to.m - 1)],
                      to.row_exponents[min(row + inside + 8, to.m - 1)]};
#pragma unroll
    for (int q = 0; q < kTileColumns / kOutColumns; ++q) {
        const int x = column + q * kOutColumns;
        float* box = out[q % 2];
        if (lane == 0) bulk_wait_read<1>();
        __syncwarp();
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int at = x + 8 * j + lane % 4 * 2;
            const int2 f = at < to.n
                               ? reinterpret_cast<const int2&>(to.column_exponents[at])
                               : int2{};
            const int quad = (2 * j + lane % 4 / 2) ^ inside;
            const float* sums = &totals[q / 4][q % 4 * 16 + 4 * j];
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                const float u = times_power_of_two(sums[2 * r], -(e[r] + f.x));
                const float v = times_power_of_two(sums[2 * r + 1], -(e[r] + f.y));
                float* target = box + (inside + 8 * r) * 32 + quad * 4 + lane % 2 * 2;
                *reinterpret_cast<float2*>(target) = make_float2(
                    multiply_exactly(to.alpha, u), multiply_exactly(to.alpha, v));
            }
        }
        fence_proxy_async();
        __syncwarp();
        if (lane == 0) {
            tma_store(c, x, row, box);
            bulk_commit();
        }
    }
}

// Adds up the totals of the blocks that divide k of a tile. Each block writes its
// totals to memory, then adds up one share of all totals, which it returns in `sums`.
template <int kShare>
__device__ __forceinline__ void add_up(
    float* partial, unsigned* counter, int thread, int part,
    const float (&totals)[2][64], float (&sums)[kShare])
{
    constexpr int kSplit = 128 / kShare;
    float* own = partial + part * 128 * kConsumers;
#pragma unroll
    for (int i = 0; i < 128; ++i) own[i * kConsumers + thread] = totals[i / 64][i % 64];
    named_sync<kConsumers>(3);
    if (thread == 0) meet(counter, kSplit);
    named_sync<kConsumers>(3);
    partial += part * kShare * kConsumers + thread;
#pragma unroll
    for (int i = 0; i < kShare; ++i) sums[i] = 0.0f;
#pragma unroll 1
    for (int p = 0; p < kSplit; ++p) {
#pragma unroll
        for (int i = 0; i < kShare; ++i) {
            sums[i] += __ldcg(partial + (p * 128 + i) * kConsumers);
        }
    }
}

// Clusters of `kDown` blocks, one below the other, share tiles of B, and compute tile
// after tile. If kSplit > 1, kSplit blocks compute one tile, each with a part of k.
// kBoxes: C has a tensor map.
template <class Left, int kDown, int kSplit, bool kBoxes>
__global__ void __cluster_dims__(kDown, 1, 1) __launch_bounds__(kBlockThreads, 1)
multiply(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b_high,
         const __grid_constant__ TensorMap b_low, const __grid_constant__ TensorMap c,
         int m, int n, int k, float alpha, const float* A, int lda, const float* B,
         int ldb, float beta, float* C, int ldc, const int* row_exponents,
         const int* column_exponents, float* partial, unsigned* words,
         int first_counter)
{
    extern __shared__ __align__(1024) unsigned char memory[];
    auto& shared = *reinterpret_cast<Shared<Left>*>(memory);
    __shared__ Barrier full[kStages], empty[kStages];
    const int rank = kDown == 1 ? 0 : cluster_rank();
    const int part = kSplit == 1 ? 0 : blockIdx.x % kSplit;
    const int thread = threadIdx.x;
    if (thread == 0) {
        for (int s = 0; s < kStages; ++s) {
            mbarrier_init(&full[s], 1);
            mbarrier_init(&empty[s], 8 * kDown);  // from each consuming warp
        }
        fence_mbarrier_init();
    }
    cluster_sync();
    wait_for_launch_before();
    constexpr int kHeight = kTileRows * kDown;
    const int rows = (m + kHeight - 1) / kHeight;
    const int columns = (n + kTileColumns - 1) / kTileColumns;
    const int chains = (k + kChain * kSlice - 1) / (kChain * kSlice);
    const int first_slice = part * chains / kSplit * kChain;
    const int last_slice = (part + 1) * chains / kSplit * kChain;
    const int first_tile = blockIdx.x / (kDown * kSplit);
    const int tile_step = gridDim.x / (kDown * kSplit);
    int slot = 0, phase = 0;
    const auto advance = [&] {
        if (++slot == kStages) {
            slot = 0;
            phase ^= 1;
        }
    };
    const auto load_box = [&](void* to, const TensorMap& from, int x, int y) {
        if constexpr (kDown == 1) {
            tma_load(to, from, x, y, &full[slot]);
        } else {
            tma_load_multicast(to, from, x, y, &full[slot], (1 << kDown) - 1);
        }
    };
    if (thread < 128) {
        release_registers<24>();
        for (int t = first_tile; thread == 0 && t < rows * columns; t += tile_step) {
            const int2 at = place(t, rows, columns);
            const int y = at.x * kHeight + rank * kTileRows, x = at.y * kTileColumns;
            for (int i = first_slice; i < last_slice; ++i) {
                Stage<Left>& to = shared.stages[slot];
                mbarrier_wait(&empty[slot], phase ^ 1);
                mbarrier_arrive_expect(&full[slot], sizeof(to));
                tma_load(to.a, a, i * Left::kPitch, y, &full[slot]);
#pragma unroll
                for (int j = 0; j < 4 / kDown; ++j) {
                    const int box = rank * (4 / kDown) + j, offset = box * 64 * kSlice;
                    load_box(to.high + offset, b_high, x + 64 * box, i * kSlice);
                    load_box(to.low + offset, b_low, x + 64 * box, i * kSlice);
                }
                advance();
            }
        }
    } else {
        claim_registers<240>();
        const int lane = thread % 32, warp = thread / 32 - 4, group = warp / 4;
        const Result to{m,   n,    k, alpha, A,   lda,           B,
                        ldb, beta, C, ldc,   row_exponents, column_exponents};
        if (group == 1) named_arrive<kConsumers>(1);
        for (int t = first_tile; t < rows * columns; t += tile_step) {
            const int2 at = place(t, rows, columns);
            const int y = at.x * kHeight + rank * kTileRows + warp * 16;
            const int inside = Left::row_of(lane);
            const Left left(to, y, warp, lane);
            float totals[2][64] = {};
#pragma unroll 1
            for (int i = first_slice; i < last_slice; i += kChain) {
                unsigned high[kChain][2][4], low[kChain][2][4];
                int from[kChain];
#pragma unroll
                for (int p = 0; p < kChain; ++p) {
                    from[p] = slot;
                    mbarrier_wait(&full[slot], phase);
                    left.fragments(shared.stages[slot].a, high[p], low[p]);
                    advance();
                }
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    float sums[64];
                    named_sync<kConsumers>(1 + group);
                    wgmma_fence();
#pragma unroll
                    for (int p = 0; p < kChain; ++p) {
                        const Stage<Left>& stage = shared.stages[from[p]];
                        const int offset = half * 128 * kSlice;
                        const Descriptor b =
                            describe_rows_of_n(stage.high + offset, kBox);
                        const Descriptor d =
                            describe_rows_of_n(stage.low + offset, kBox);
#pragma unroll
                        for (int s = 0; s < 2; ++s) {
                            const bool more = p + s > 0;
                            wgmma_f16_rows_of_n(sums, low[p][s], b + 128 * s, more);
                            wgmma_f16_rows_of_n(sums, high[p][s], d + 128 * s, true);
                            wgmma_f16_rows_of_n(sums, high[p][s], b + 128 * s, true);
                        }
                    }
                    wgmma_commit();
                    named_arrive<kConsumers>(2 - group);
                    wgmma_wait<0>();
                    if (half == 1) {
                        __syncwarp();
#pragma unroll
                        for (int p = 0; p < kChain; ++p) {
                            if (lane < kDown) mbarrier_arrive_at(&empty[from[p]], lane);
                        }
                    }
#pragma unroll
                    for (int j = 0; j < 64; ++j) totals[half][j] += sums[j];
                }
            }
            const int x = at.y * kTileColumns, column = x + lane % 4 * 2;
            if constexpr (kSplit > 1) {
                float sums[128 / kSplit];
                add_up(partial + static_cast<size_t>(t) * kSplit * 128 * kConsumers,
                       words + first_counter + t, thread - 128, part, totals, sums);
                store(to, y + inside, column + part * (kTileColumns / kSplit), sums);
            } else if (kBoxes && beta == 0.0f && !any_not_finite(to, y, x)) {
                store_boxes(to, c, y, x, inside, shared.out[warp], totals);
            } else {
                store(to, y + inside, column, totals[0]);
                store(to, y + inside, column + 128, totals[1]);
            }
        }
        if (group == 0) named_sync<kConsumers>(1);
        if (lane == 0) bulk_wait<0>();
    }
    cluster_sync();
}
