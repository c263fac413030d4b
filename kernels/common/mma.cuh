// Matrix products of a warp (mma.sync, sm_80), and the loads from shared memory that
// hand each lane its part of the factors (ldmatrix).
//
// Lane l has the elements of row l / 4 and of the columns 2 (l % 4) and the next of each
// 8 x 8 matrix of a factor or a result, two halves or one float to a register.
#pragma once

#include "async_copy.cuh"

// The bits of a half: cuda_fp16.h is not needed to move them.
using Half = unsigned short;

// Four 8 x 8 matrices of halves; lane l gives the address of row l % 8 of matrix l / 8.
__device__ __forceinline__ void load_matrices(unsigned (&to)[4], const Half* row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(shared_address(row))
                 : "memory");
}

// The same four matrices, each transposed.
__device__ __forceinline__ void load_transposed(unsigned (&to)[4], const Half* row)
{
    asm volatile(
        "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
        : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
        : "r"(shared_address(row))
        : "memory");
}

// d += A B: A is 16 x 16, as the matrices (0, 0), (1, 0), (0, 1), (1, 1); B is 16 x 8,
// its two matrices transposed; d is 16 x 8.
__device__ __forceinline__ void mma_f16(
    float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
        " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// The same of TF32, floats whose 13 last bits do not count: A is 16 x 8, B 8 x 8.
__device__ __forceinline__ void mma_tf32(
    float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"
        " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
