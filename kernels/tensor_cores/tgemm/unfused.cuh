// The product of split matrices: for each slice of k, the products of some pairs of
// parts, which come from memory one pair after the other.
#pragma once

#include "../../common/hopper/tma.cuh"
#include "parts.cuh"
#include "result.cuh"

constexpr int kTile = 128, kStages = 3, kRowBytes = 128, kMultiplyThreads = 256;

struct Slot {
    unsigned char a[kTile * kRowBytes];
    unsigned char b[kTile * kRowBytes];
};

// `Scheme` names the type of the parts, how many there are, and the pairs: term t
// multiplies part left(t) of A with part right(t) of B, the smallest first. Every
// `kChain` slices the sums are added to totals in registers; with 0, never.
template <typename Scheme, int kChain>
__global__ void __launch_bounds__(kMultiplyThreads)
multiply(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b,
         int m, int n, int k, float alpha, const float* A, int lda, const float* B,
         int ldb, float beta, float* C, int ldc, const int* row_exponents,
         const int* column_exponents)
{
    using Type = typename Scheme::Type;
    constexpr int kSlice = kRowBytes / static_cast<int>(sizeof(typename Type::Bits));
    extern __shared__ __align__(1024) Slot ring[];
    __shared__ Barrier full[kStages], empty[kStages];
    const int thread = threadIdx.x, group = thread / 128;
    const int row = blockIdx.y * kTile, column = blockIdx.x * kTile;
    const int steps = (k + kSlice - 1) / kSlice * Scheme::kTerms;
    if (thread == 0) {
        for (int s = 0; s < kStages; ++s) {
            mbarrier_init(&full[s], 1);
            mbarrier_init(&empty[s], kMultiplyThreads);
        }
        fence_mbarrier_init();
    }
    __syncthreads();
    const auto load = [&](int step) {
        Slot& to = ring[step % kStages];
        Barrier* arrived = &full[step % kStages];
        const int at = step / Scheme::kTerms * kSlice, term = step % Scheme::kTerms;
        mbarrier_arrive_expect(arrived, sizeof(Slot));
        tma_load(to.a, a, at, row, Scheme::left(term), arrived);
        tma_load(to.b, b, at, column, Scheme::right(term), arrived);
    };
    if (thread == 0) {
        for (int step = 0; step < min(kStages - 1, steps); ++step) load(step);
    }
    float sums[kTile / 2] = {}, totals[kTile / 2] = {};
    for (int step = 0; step < steps; ++step) {
        // Refill the slot that the previous step has read.
        const int next = step + kStages - 1;
        if (thread == 0 && next < steps) {
            if (step > 0) {
                mbarrier_wait(&empty[next % kStages], next / kStages % 2 ^ 1);
            }
            load(next);
        }
        __syncwarp();
        Slot& slot = ring[step % kStages];
        mbarrier_wait(&full[step % kStages], step / kStages % 2);
        const Descriptor left = describe_rows_of_k(slot.a + group * 64 * kRowBytes);
        const Descriptor right = describe_rows_of_k(slot.b);
        const bool anew = kChain > 0 && step % (kChain * Scheme::kTerms) == 0;
        wgmma_fence();
#pragma unroll
        for (int s = 0; s < kRowBytes / 32; ++s) {
            Type::multiply(sums, left + 2 * s, right + 2 * s, !(anew && s == 0));
        }
        wgmma_commit();
        wgmma_wait<0>();
        mbarrier_arrive(&empty[step % kStages]);
        if (kChain > 0 && (step + 1) % (kChain * Scheme::kTerms) == 0) {
#pragma unroll
            for (int i = 0; i < kTile / 2; ++i) totals[i] += sums[i];
        }
    }
    if (kChain == 0 || steps % (kChain * Scheme::kTerms) != 0) {
#pragma unroll
        for (int i = 0; i < kTile / 2; ++i) totals[i] += sums[i];
    }
    const int lane = thread % 32, warp = thread / 32 % 4;
    const Result to{m,   n,    k, alpha, A,   lda,           B,
                    ldb, beta, C, ldc,   row_exponents, column_exponents};
    store(to, row + group * 64 + warp * 16 + lane / 4, column + lane % 4 * 2, totals);
}
