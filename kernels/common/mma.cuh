// Products of a warp on tensor cores (mma.sync, sm_80): 16 x 8 sums, d += A B, whose
// fragments lie in registers, and ldmatrix, which loads fragments from shared memory.
//
// With g = lane / 4 and t = lane % 4, a lane holds of A rows g and g + 8, of B column
// g, and of the sums d[0], d[1] of row g, columns 2t and 2t + 1, and d[2], d[3] of row
// g + 8.
#pragma once

#include "async_copy.cuh"

// A 16 x 8: a[0] is row g, column t; a[1] row g + 8; a[2], a[3] the same of column
// t + 4. B 8 x 8: b0 is row t, b1 row t + 4. Of each float, the low 13 bits do not
// count.
__device__ __forceinline__ void mma_tf32(
    float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"
        " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// A 16 x 16: a register has two halves, of columns 2t and 2t + 1, then of 2t + 8 and
// 2t + 9. B 16 x 8: b0 has rows 2t and 2t + 1, b1 has 2t + 8 and 2t + 9.
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

// Four matrices of 8 rows of 16 bytes: lane i has the address of row i % 8 of matrix
// i / 8. Of matrix j, r[j] is what row lane / 4 has in its 4 bytes number lane % 4.
__device__ __forceinline__ void load_matrices(unsigned (&r)[4], const void* row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(row))
                 : "memory");
}
// The same of the transposed matrices, of halves.
__device__ __forceinline__ void load_transposed(unsigned (&r)[4], const void* row)
{
    asm volatile(
        "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
        : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
        : "r"(shared_address(row))
        : "memory");
}
