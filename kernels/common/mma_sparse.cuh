// Products of a warp whose first factor is 2:4 sparse (mma.sp, sm_80): 16 x 8 sums of
// halves, d += A B, for 32 of k, 16 of them stored in A.
//
// A's fragment is that of a dense product with 16 columns. B has 32 rows: with
// g = lane / 4 and t = lane % 4, b[i] holds rows 8i + 2t and 8i + 2t + 1 of column g.
// Metadata have four bits per four of k: two indices, the lower one first. The lanes
// with t = 2 kSelector and t = 2 kSelector + 1 each supply 16 of k: row g in the lower
// half of the register, row g + 8 in the upper half.
#pragma once

template <int kSelector>
__device__ __forceinline__ void mma_sparse_f16(
    float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[4], unsigned metadata)
{
    asm volatile(
        "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
        " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9, %10, %11}, {%0, %1, %2, %3},"
        " %12, %13;"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(b[2]),
          "r"(b[3]), "r"(metadata), "n"(kSelector));
}
