// The end of every rung: C = alpha A B + beta C from sums of scaled products.
#pragma once

#include "scales.cuh"

struct Result {
    int m, n, k;
    float alpha;
    const float* A;
    int lda;
    const float* B;
    int ldb;
    float beta;
    float* C;
    int ldc;
    const int* row_exponents;
    const int* column_exponents;
};

// Computes an element whose row of A or column of B is not finite: only products with
// infinities and NaNs decide whether it is an infinity or a NaN.
__device__ __forceinline__ float not_finite(const Result& to, int row, int column)
{
    float sum = 0.0f;
    for (int i = 0; i < to.k; ++i) {
        const float a = to.A[static_cast<size_t>(row) * to.lda + i];
        const float b = to.B[static_cast<size_t>(i) * to.ldb + column];
        const bool finite = max(magnitude(a), magnitude(b)) < 0x7f800000u;
        if (!finite) sum = multiply_add(a, b, sum);
    }
    return sum;
}

// Loads or stores a float if it is wanted, without a branch.
__device__ __forceinline__ float load_if(bool wanted, const float* from)
{
    float value = 0.0f;
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "setp.ne.b32 p, %2, 0;\n"
        "@p ld.global.f32 %0, [%1];\n"
        "}"
        : "+f"(value)
        : "l"(from), "r"(static_cast<int>(wanted))
        : "memory");
    return value;
}
__device__ __forceinline__ void store_if(bool wanted, float* to, float value)
{
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "setp.ne.b32 p, %2, 0;\n"
        "@p st.global.f32 [%0], %1;\n"
        "}" ::"l"(to),
        "f"(value), "r"(static_cast<int>(wanted))
        : "memory");
}

// Stores alpha times `value`, plus beta times the old element if beta is not 0.
__device__ __forceinline__ void put(
    const Result& to, int row, int column, float value, bool wanted)
{
    float* at = to.C + static_cast<size_t>(row) * to.ldc + column;
    const float old = load_if(wanted && to.beta != 0.0f, at);
    value = multiply_add(to.beta, old, multiply_exactly(to.alpha, value));
    store_if(wanted, at, value);
}

// Stores sums in wgmma's layout: a thread has columns `column` and `column` + 1, and
// the same pair of every next 8 columns, in rows `row` and `row` + 8.
template <int kSums>
__device__ __forceinline__ void store(
    const Result& to, int row, int column, const float (&sums)[kSums])
{
    const int e[2] = {to.row_exponents[min(row, to.m - 1)],
                      to.row_exponents[min(row + 8, to.m - 1)]};
    int largest = max(e[0], e[1]);
#pragma unroll 4
    for (int j = 0; j < kSums / 2; ++j) {
        const int x = column + j / 2 * 8 + j % 2;
        largest = max(largest, to.column_exponents[min(x, to.n - 1)]);
    }
    const bool whole = row + 8 < to.m && column + 2 * kSums - 7 < to.n;
    const bool pairs =
        to.ldc % 2 == 0 && reinterpret_cast<unsigned long long>(to.C) % 8 == 0;
    if (whole && pairs && to.beta == 0.0f && largest != kNotFinite) {
#pragma unroll
        for (int j = 0; j < kSums / 2; ++j) {
            const int r = j % 2, x = column + j / 2 * 8;
            const int2 f = reinterpret_cast<const int2&>(to.column_exponents[x]);
            const float u = times_power_of_two(sums[2 * j], -(e[r] + f.x));
            const float v = times_power_of_two(sums[2 * j + 1], -(e[r] + f.y));
            float* at = to.C + static_cast<size_t>(row + 8 * r) * to.ldc + x;
            *reinterpret_cast<float2*>(at) = make_float2(
                multiply_exactly(to.alpha, u), multiply_exactly(to.alpha, v));
        }
        return;
    }
#pragma unroll
    for (int j = 0; j < kSums; ++j) {
        const int r = j / 2 % 2, y = row + 8 * r, x = column + j / 4 * 8 + j % 2;
        const int f = to.column_exponents[min(x, to.n - 1)];
        const float value = times_power_of_two(sums[j], -(e[r] + f));
        put(to, y, x, value, y < to.m && x < to.n && max(e[r], f) != kNotFinite);
    }
    if (largest != kNotFinite) return;
#pragma unroll 1
    for (int j = 0; j < kSums; ++j) {
        const int y = row + j / 2 % 2 * 8, x = column + j / 4 * 8 + j % 2;
        if (y >= to.m || x >= to.n) continue;
        if (max(to.row_exponents[y], to.column_exponents[x]) == kNotFinite) {
            put(to, y, x, not_finite(to, y, x), true);
        }
    }
}
