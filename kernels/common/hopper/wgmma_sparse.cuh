// Products of a warpgroup whose first factor is 2:4 sparse (wgmma.sp, sm_90a): 64 x N
// sums over 32 of k, 16 of them stored in A, as halves, for N of 128 or 256.
//
// A tile of A holds only the stored half of its elements: rows of 64 bytes per 64 of k.
// 32-bit registers of metadata tell which elements these are. Lane 4g + t supplies rows
// g and g + 8 of its warp's 16, in the lower and upper half, four bits for each four of
// k; the selector picks lanes with t = 0 and 1 (0) or t = 2 and 3 (1). So one register
// per lane holds the metadata of 64 of k, which is two products.
#pragma once

#include "wgmma.cuh"

// A tile of stored halves with rows of 64 bytes and the 64-byte swizzle. Add 2 for the
// next 32 of k.
__device__ __forceinline__ Descriptor describe_stored_rows(const void* tile)
{
    return tile_start(tile) | 1ull << 16 | 32ull << 32 | 2ull << 62;
}

#define SPARSE_128 "%64, %65, %66, %67, add, 1, 1"
#define SPARSE_ADD_128 "%68"
#define SPARSE_256 "%128, %129, %130, %131, add, 1, 1"
#define SPARSE_ADD_256 "%132"
#define SPARSE_HELD_256 "{%128, %129, %130, %131}, %132, %133, %134, add, 1, 1"
#define SPARSE_HELD_ADD_256 "%135"

// d = A B, or d += A B if `more`; rows of B run along n. The tensor core reads the
// metadata register until the product is done, so wait before changing it.
#define WGMMA_SPARSE(n)                                                             \
    template <int kSelector>                                                        \
    __device__ __forceinline__ void wgmma_sparse_f16_rows_of_n(                     \
        float (&d)[n / 2], Descriptor a, Descriptor b, unsigned metadata, bool more) \
    {                                                                               \
        asm volatile("{.reg .pred add;\nsetp.ne.b32 add, " SPARSE_ADD_##n ", 0;\n"  \
                     "wgmma.mma_async.sp.sync.aligned.m64n" #n "k32.f32.f16.f16"    \
                     " {" NAMES_OF_##n "}, " SPARSE_##n ", 0, 1;\n}"                \
                     : SUMS_OF_##n                                                  \
                     : "l"(a), "l"(b), "r"(metadata), "n"(kSelector),               \
                       "r"(static_cast<int>(more))                                  \
                     : "memory");                                                   \
    }
WGMMA_SPARSE(128)
WGMMA_SPARSE(256)

// The same with the stored half of A in registers, which must not change meanwhile.
template <int kSelector>
__device__ __forceinline__ void wgmma_sparse_f16_rows_of_n(
    float (&d)[128], const unsigned (&a)[4], Descriptor b, unsigned metadata, bool more)
{
    asm volatile("{.reg .pred add;\nsetp.ne.b32 add, " SPARSE_HELD_ADD_256 ", 0;\n"
                 "wgmma.mma_async.sp.sync.aligned.m64n256k32.f32.f16.f16"
                 " {" NAMES_OF_256 "}, " SPARSE_HELD_256 ", 1;\n}"
                 : SUMS_OF_256
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(metadata),
                   "n"(kSelector), "r"(static_cast<int>(more))
                 : "memory");
}
