// Double precision for the results that tensor cores cannot compute from parts:
// subnormal ones, and those of infinities and NaNs.
#pragma once

#include "result.cuh"

// Tells whether tensor cores may have computed an element wrongly: they flush numbers
// below 2^-126 to zero, and the parts of an infinity are NaNs.
__device__ __forceinline__ bool is_doubtful(float x)
{
    const unsigned least = 0x02800000u;  // 2^-122
    return magnitude(x) - least >= 0x7f800000u - least;
}

// Conversions that keep subnormal numbers.
__device__ __forceinline__ double widen(float x)
{
    double wide;
    asm("cvt.f64.f32 %0, %1;" : "=d"(wide) : "f"(x));
    return wide;
}
__device__ __forceinline__ float narrow(double x)
{
    float rounded;
    asm("cvt.rn.f32.f64 %0, %1;" : "=f"(rounded) : "d"(x));
    return rounded;
}

// Computes an element with a warp, in double precision, which holds every product.
__device__ __forceinline__ float in_double(const Result& to, int row, int column)
{
    const float* a = to.A + static_cast<size_t>(row) * to.lda;
    const float* b = to.B + column;
    double sum = 0.0;
    for (int i = threadIdx.x % 32; i < to.k; i += 32) {
        sum += widen(a[i]) * widen(b[static_cast<size_t>(i) * to.ldb]);
    }
#pragma unroll
    for (int apart = 16; apart > 0; apart /= 2) {
        sum += __shfl_xor_sync(0xffffffffu, sum, apart);
    }
    return narrow(sum);
}
__device__ __forceinline__ bool is_zero_row(const Result& to, int row)
{
    const float* a = to.A + static_cast<size_t>(row) * to.lda;
    unsigned any = 0;
    for (int i = threadIdx.x % 32; i < to.k; i += 32) any |= magnitude(a[i]);
    return __all_sync(0xffffffffu, any == 0);
}

// Recomputes doubtful elements of a warp; a lane's elements are values[j] at (row(j),
// column(j)). A zero is not doubtful if its row of A has only zeros.
template <int kValues, class Row, class Column>
__device__ __forceinline__ void mend(const Result& to, float (&values)[kValues],
                                     Row row, Column column)
{
    int other_row = -1, zero_row = -1;
#pragma unroll
    for (int j = 0; j < kValues; ++j) {
        const bool inside = row(j) < to.m && column(j) < to.n;
        unsigned left = __ballot_sync(0xffffffffu, inside && is_doubtful(values[j]));
#pragma unroll 1
        for (; left != 0; left &= left - 1) {
            const int source = __ffs(left) - 1;
            const int its_row = __shfl_sync(0xffffffffu, row(j), source);
            if (__shfl_sync(0xffffffffu, values[j], source) == 0.0f) {
                if (its_row != zero_row && its_row != other_row) {
                    (is_zero_row(to, its_row) ? zero_row : other_row) = its_row;
                }
                if (its_row == zero_row) continue;
            }
            const float exact =
                in_double(to, its_row, __shfl_sync(0xffffffffu, column(j), source));
            if (threadIdx.x % 32 == source) values[j] = exact;
        }
    }
}
