// The product for few rows: the roles are exchanged. Columns of B are the 64 rows that
// a warpgroup multiplies, split in registers as they come from memory, once; rows of A
// are the second factor, split beforehand.
#pragma once

#include "../../common/hopper/dependent.cuh"
#include "../../common/hopper/tma.cuh"
#include "../../common/hopper/wgmma.cuh"
#include "meet.cuh"
#include "result.cuh"
#include "split_rows.cuh"

constexpr int kTileColumns = 128, kTileRows = 64, kSlice = 32, kStages = 8;
constexpr int kBlockThreads = 384, kConsumers = 256;
constexpr int kBoxFloats = kSlice * 32;  // of a box of B: 32 columns

struct alignas(1024) Stage {
    float b[kTileColumns * kSlice];
    unsigned short a[kTileRows * 2 * kSlice];
};

// B with rows at multiples of 16 bytes, for the copy engine.
__global__ void __launch_bounds__(kPrepareThreads)
copy_rows(const float* __restrict__ B, int ldb, int n, int k, float* __restrict__ copy,
          int pitch)
{
    for (int row = blockIdx.x; row < k; row += gridDim.x) {
        for (int x = threadIdx.x; x < pitch; x += kPrepareThreads) {
            copy[static_cast<size_t>(row) * pitch + x] =
                x < n ? B[static_cast<size_t>(row) * ldb + x] : 0.0f;
        }
    }
}

// The exponent of a column as far as it has been read, and whether it is finite. All of
// four lanes that share the column have the same.
struct Column {
    int exponent = 127;
    bool finite = true;

    // Takes in more of the column. Returns what the sums so far have to be multiplied
    // by.
    __device__ __forceinline__ float update(unsigned largest)
    {
        largest = max(largest, __shfl_xor_sync(0xffffffffu, largest, 1));
        largest = max(largest, __shfl_xor_sync(0xffffffffu, largest, 2));
        const int found = exponent_for(largest), before = exponent;
        finite = finite && found != kNotFinite;
        exponent = min(exponent, found);
        return power_of_two(max(exponent - before, -127));
    }
};

// Tiles of 64 rows of A and 128 columns of B; `parts` blocks share a tile, a part of k
// each, and have numbers that follow each other.
__global__ void __launch_bounds__(kBlockThreads, 1)
multiply_few(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b,
             int m, int n, int k, float alpha, const float* A, int lda, const float* B,
             int ldb, float beta, float* C, int ldc, const int* row_exponents,
             int parts, float* partial, int* exponents, unsigned* counters)
{
    extern __shared__ __align__(1024) Stage stages[];
    __shared__ Barrier full[kStages], empty[kStages];
    const int thread = threadIdx.x, part = blockIdx.x % parts;
    const int tile = blockIdx.x / parts, across = (n + kTileColumns - 1) / kTileColumns;
    const int x = tile % across * kTileColumns, y = tile / across * kTileRows;
    if (thread == 0) {
        for (int s = 0; s < kStages; ++s) {
            mbarrier_init(&full[s], 1);
            mbarrier_init(&empty[s], kConsumers / 32);
        }
        fence_mbarrier_init();
    }
    __syncthreads();
    const int slices = (k + kSlice - 1) / kSlice;
    const int first = part * slices / parts, last = (part + 1) * slices / parts;
    if (thread >= kConsumers) {
        if (thread == kConsumers) {
            const auto load_b = [&](int i) {
                const int slot = (i - first) % kStages;
                mbarrier_arrive_expect(&full[slot], sizeof(Stage));
                for (int j = 0; j < kTileColumns / 32; ++j) {
                    tma_load(stages[slot].b + j * kBoxFloats, b, x + 32 * j, i * kSlice,
                             &full[slot]);
                }
            };
            const auto load_a = [&](int i) {
                const int slot = (i - first) % kStages;
                tma_load(stages[slot].a, a, i * 2 * kSlice, y, &full[slot]);
            };
            // B does not wait for the launch that splits A.
            const int early = min(first + kStages, last);
            for (int i = first; i < early; ++i) load_b(i);
            wait_for_launch_before();
            for (int i = first; i < early; ++i) load_a(i);
            for (int i = early; i < last; ++i) {
                const int round = (i - first) / kStages;
                mbarrier_wait(&empty[(i - first) % kStages], round % 2 ^ 1);
                load_b(i);
                load_a(i);
            }
        }
        return;
    }
    wait_for_launch_before();
    const int lane = thread % 32, warp = thread / 32, g = lane / 4, t = lane % 4;
    // The columns of this lane's fragments are own and own + 8.
    const int own = warp * 16 + g;
    float totals[32] = {};
    Column columns[2];
    for (int i = first; i < last; ++i) {
        const int slot = (i - first) % kStages;
        const Stage& from = stages[slot];
        mbarrier_wait(&full[slot], (i - first) / kStages % 2);
        float values[2][2][4];  // by column, by 16 of k, in the order of fragments
        unsigned largest[2] = {};
#pragma unroll
        for (int c = 0; c < 2; ++c) {
            const int column = own + 8 * c;
            const float* box = from.b + column / 32 * kBoxFloats;
#pragma unroll
            for (int s = 0; s < 2; ++s) {
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    const int row = 16 * s + 2 * t + j % 2 + j / 2 * 8;
                    const int quad = column % 32 / 4 ^ row % 8;
                    values[c][s][j] = box[row * 32 + quad * 4 + column % 4];
                    largest[c] = max(largest[c], magnitude(values[c][s][j]));
                }
            }
        }
        float scales[2];
        bool changed = false;
#pragma unroll
        for (int c = 0; c < 2; ++c) {
            const float factor = columns[c].update(largest[c]);
            scales[c] = power_of_two(columns[c].exponent);
            if (factor == 1.0f) continue;
            changed = true;
#pragma unroll
            for (int j = 0; j < 32; ++j) {
                if (j / 2 % 2 == c) totals[j] *= factor;
            }
        }
        unsigned high[2][4], low[2][4];
#pragma unroll
        for (int s = 0; s < 2; ++s) {
#pragma unroll
            for (int q = 0; q < 4; ++q) {  // column q % 2, the lower or upper 8 of k
                const float* pair = &values[q % 2][s][q / 2 * 2];
                split_pair(multiply_exactly(pair[0], scales[q % 2]),
                           multiply_exactly(pair[1], scales[q % 2]), high[s][q],
                           low[s][q]);
            }
        }
        const Descriptor rows = describe_rows_of_k(from.a);
        float sums[32];
        wgmma_fence();
#pragma unroll
        for (int s = 0; s < 2; ++s) {
            wgmma_f16(sums, low[s], rows + 2 * s, s > 0);
            wgmma_f16(sums, high[s], rows + 4 + 2 * s, true);
            wgmma_f16(sums, high[s], rows + 2 * s, true);
        }
        wgmma_commit();
        wgmma_wait<0>();
        __syncwarp();
        if (lane == 0) mbarrier_arrive(&empty[slot]);
#pragma unroll
        for (int j = 0; j < 32; ++j) totals[j] += sums[j];
    }
    // Parts meet in memory: totals, and the exponents that they are scaled by.
    partial += static_cast<size_t>(tile) * parts * 32 * kConsumers + thread;
    exponents += tile * parts * kTileColumns;
#pragma unroll
    for (int j = 0; j < 32; ++j) partial[(part * 32 + j) * kConsumers] = totals[j];
    if (t == 0) {
#pragma unroll
        for (int c = 0; c < 2; ++c) {
            exponents[part * kTileColumns + own + 8 * c] =
                columns[c].finite ? columns[c].exponent : kNotFinite;
        }
    }
    asm volatile("bar.sync 1, %0;" ::"n"(kConsumers) : "memory");
    if (thread == 0) meet(counters + tile, parts);
    asm volatile("bar.sync 1, %0;" ::"n"(kConsumers) : "memory");
    // A block adds up a share of all.
    const Result to{m,   n,    k, alpha, A,   lda,           B,
                    ldb, beta, C, ldc,   row_exponents, nullptr};
#pragma unroll 1
    for (int j = part * 32 / parts; j < (part + 1) * 32 / parts; ++j) {
        const int column = own + j / 2 % 2 * 8, row = y + j / 4 * 8 + 2 * t + j % 2;
        int exponent = 127, largest = 0;
        for (int p = 0; p < parts; ++p) {
            const int e = __ldcg(&exponents[p * kTileColumns + column]);
            exponent = min(exponent, e);
            largest = max(largest, e);
        }
        float sum = 0.0f;
        for (int p = 0; p < parts; ++p) {
            const int e = __ldcg(&exponents[p * kTileColumns + column]);
            const float theirs = __ldcg(&partial[(p * 32 + j) * kConsumers]);
            sum += theirs * power_of_two(max(exponent - e, -127));
        }
        if (row >= m || x + column >= n) continue;
        const int e = row_exponents[row];
        const bool finite = max(e, largest) != kNotFinite;
        put(to, row, x + column,
            finite ? times_power_of_two(sum, -(e + exponent))
                   : not_finite(to, row, x + column),
            true);
    }
}
