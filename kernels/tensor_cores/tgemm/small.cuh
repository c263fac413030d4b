// The product in tiles of 64 x 128, for products with too few large tiles for all SMs.
// Two warpgroups share a tile: one multiplies while the other adds up.
#pragma once

#include "../../common/hopper/dependent.cuh"
#include "../../common/hopper/tma.cuh"
#include "../../common/hopper/wgmma.cuh"
#include "result.cuh"

constexpr int kTileRows = 64, kTileColumns = 128, kSlice = 32, kStages = 8;
constexpr int kChain = 2;           // slices from one promotion to the next
constexpr int kBox = kSlice * 128;  // bytes of a box of B: 64 columns
constexpr int kConsumers = 256, kBlockThreads = kConsumers + 32;

static_assert(kStages % (2 * kChain) == 0, "a stage belongs to one warpgroup");

struct alignas(1024) Stage {
    unsigned short a[kTileRows * 2 * kSlice];  // rows of high parts, then low ones
    unsigned short high[kTileColumns * kSlice];
    unsigned short low[kTileColumns * kSlice];
};

__device__ __forceinline__ void sync_consumers()
{
    asm volatile("bar.sync 1, %0;" ::"n"(kConsumers) : "memory");
}

__global__ void __launch_bounds__(kBlockThreads, 1)
multiply_small(const __grid_constant__ TensorMap a,
               const __grid_constant__ TensorMap b_high,
               const __grid_constant__ TensorMap b_low, int m, int n, int k,
               float alpha, const float* A, int lda, const float* B, int ldb,
               float beta, float* C, int ldc, const int* row_exponents,
               const int* column_exponents)
{
    extern __shared__ __align__(1024) Stage stages[];
    __shared__ Barrier full[kStages], empty[kStages];
    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    const int down = (m + kTileRows - 1) / kTileRows;
    const int y = blockIdx.x % down * kTileRows, x = blockIdx.x / down * kTileColumns;
    const int chains = (k + kChain * kSlice - 1) / (kChain * kSlice);
    if (thread == kConsumers) {
        tma_prefetch(a);
        tma_prefetch(b_high);
        tma_prefetch(b_low);
        for (int s = 0; s < kStages; ++s) {
            mbarrier_init(&full[s], 1);
            mbarrier_init(&empty[s], 4);  // from each warp of the group that reads it
        }
        fence_mbarrier_init();
    }
    __syncthreads();
    wait_for_launch_before();
    if (thread >= kConsumers) {
        for (int i = 0; thread == kConsumers && i < chains * kChain; ++i) {
            const int slot = i % kStages;
            Stage& to = stages[slot];
            mbarrier_wait(&empty[slot], i / kStages % 2 ^ 1);
            mbarrier_arrive_expect(&full[slot], sizeof(to));
            tma_load(to.a, a, i * 2 * kSlice, y, &full[slot]);
#pragma unroll
            for (int j = 0; j < kTileColumns; j += 64) {
                tma_load(to.high + j * kSlice, b_high, x + j, i * kSlice, &full[slot]);
                tma_load(to.low + j * kSlice, b_low, x + j, i * kSlice, &full[slot]);
            }
        }
    }
    const int group = warp / 4;
    float totals[64] = {};
#pragma unroll 1
    for (int c = group; group < 2 && c < chains; c += 2) {
        float sums[64];
#pragma unroll
        for (int p = 0; p < kChain; ++p) {
            const int i = c * kChain + p, slot = i % kStages;
            const Stage& from = stages[slot];
            mbarrier_wait(&full[slot], i / kStages % 2);
            const Descriptor rows = describe_rows_of_k(from.a);
            const Descriptor high = describe_rows_of_n(from.high, kBox);
            const Descriptor low = describe_rows_of_n(from.low, kBox);
            if (p == 0) wgmma_fence();
#pragma unroll
            for (int s = 0; s < 2; ++s) {
                const Descriptor a_high = rows + 2 * s, a_low = a_high + 4;
                wgmma_f16_rows_of_n(sums, a_low, high + 128 * s, p + s > 0);
                wgmma_f16_rows_of_n(sums, a_high, low + 128 * s, true);
                wgmma_f16_rows_of_n(sums, a_high, high + 128 * s, true);
            }
        }
        wgmma_commit();
        wgmma_wait<0>();
        __syncwarp();
        if (lane < kChain) mbarrier_arrive(&empty[(c * kChain + lane) % kStages]);
#pragma unroll
        for (int j = 0; j < 64; ++j) totals[j] += sums[j];
    }
    __syncthreads();  // no product reads the ring any more
    if (group == 2) return;
    // Each warpgroup gets the other's sums for its own half of the columns.
    float* shared = reinterpret_cast<float*>(stages) + thread % 128;
#pragma unroll
    for (int j = 0; j < 32; ++j) {
        shared[(group * 32 + j) * 128] = group == 0 ? totals[32 + j] : totals[j];
    }
    sync_consumers();
    float sums[32];
#pragma unroll
    for (int j = 0; j < 32; ++j) {
        const float own = group == 0 ? totals[j] : totals[32 + j];
        sums[j] = own + shared[((1 - group) * 32 + j) * 128];
    }
    const Result to{m,   n,    k, alpha, A,   lda,           B,
                    ldb, beta, C, ldc,   row_exponents, column_exponents};
    store(to, y + warp % 4 * 16 + lane / 4, x + 64 * group + lane % 4 * 2, sums);
}
