// Products of a warp on tensor cores (mma.sync, sm_80): 16 x 8 sums, d += A B, with
// fragments in registers; and ldmatrix, which loads fragments from shared memory.
//
// With g = lane / 4 and t = lane % 4, a lane holds rows g and g + 8 of A and column g
// of B. Of the sums, it holds columns 2t and 2t + 1: of row g in d[0] and d[1], of row
// g + 8 in d[2] and d[3].
#pragma once

#include "async_copy.cuh"

// A 16 x 8: a[0] is row g, column t; a[1] row g + 8; a[2], a[3] are the same rows of
// column t + 4. B 8 x 8: b0 is row t, b1 row t + 4. The low 13 bits of each float are
// ignored.
__device__ __forceinline__ void mma_tf32(
    float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"
        " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// A 16 x 16: a register has two halves, of columns 2t and 2t + 1 in a[0], a[1], and of
// 2t + 8 and 2t + 9 in a[2], a[3]. B 16 x 8: b0 has rows 2t, 2t + 1; b1 2t + 8, 2t + 9.
__device__ __forceinline__ void mma_f16(
    float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
        " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ __forceinline__ void mma_bf16(
    float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
        " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Loads four matrices of 8 rows of 16 bytes: lane i passes the address of row i % 8 of
// matrix i / 8. r[j] is word lane % 4 of row lane / 4 of matrix j.
__device__ __forceinline__ void load_matrices(unsigned (&r)[4], const void* row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(row))
                 : "memory");
}
// The same for the transposes of matrices of halves.
__device__ __forceinline__ void load_transposed(unsigned (&r)[4], const void* row)
{
    asm volatile(
        "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
        : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
        : "r"(shared_address(row))
        : "memory");
}
