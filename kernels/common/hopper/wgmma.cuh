// Products of a warpgroup (wgmma, sm_90a): 64 x N sums, each of 16 products of halves
// or 8 of TF32, for N of 64, 112, 128, 192 or 256. The second factor is in shared
// memory, the first in shared memory or in registers.
//
// A tile in shared memory has rows of 128 bytes, swizzled as the copy engine swizzles
// them, and starts at a multiple of 1024 bytes.
#pragma once

using Descriptor = unsigned long long;

// A tile's address as a descriptor stores it. The bits above the lowest 18 hold the
// block's rank in its cluster, which would overlap other fields.
__device__ __forceinline__ Descriptor tile_start(const void* tile)
{
    return (static_cast<unsigned>(__cvta_generic_to_shared(tile)) & 0x3ffff) >> 4;
}

// A tile whose rows run along k: 64 halves or 32 floats. Add 2 for the next 32 bytes.
__device__ __forceinline__ Descriptor describe_rows_of_k(const void* tile)
{
    return tile_start(tile) | 1ull << 16 | 64ull << 32 | 1ull << 62;
}

// A tile of halves with one row per k, of 64 elements along m or n. The tile of the
// next 64 starts `pitch` bytes later. Add 128 for the next 16 of k.
__device__ __forceinline__ Descriptor describe_rows_of_n(const void* tile, int pitch)
{
    const Descriptor apart = static_cast<unsigned>(pitch) >> 4;
    return tile_start(tile) | apart << 16 | 64ull << 32 | 1ull << 62;
}

// A tile of halves without a swizzle, in pieces of 8 halves along k: 8 rows of pieces
// are contiguous, the next 8 rows start `rows_apart` bytes later, the next 8 along k
// `k_apart` bytes later. It may start at any piece; add 1 for the next piece.
__device__ __forceinline__ Descriptor describe_pieces(const void* tile, int k_apart,
                                                      int rows_apart)
{
    const Descriptor along_k = static_cast<unsigned>(k_apart) >> 4;
    const Descriptor along_rows = static_cast<unsigned>(rows_apart) >> 4;
    return tile_start(tile) | along_k << 16 | along_rows << 32;
}

// Orders this warpgroup's use of registers before the products that follow.
__device__ __forceinline__ void wgmma_fence()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
// Closes a group of products; waits until at most `kOpen` groups are not finished.
__device__ __forceinline__ void wgmma_commit()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int kOpen> __device__ __forceinline__ void wgmma_wait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kOpen) : "memory");
}

// A barrier for this warpgroup; no other barrier may use the same `id`, 1 to 15.
__device__ __forceinline__ void sync_warpgroup(int id)
{
    asm volatile("bar.sync %0, 128;" ::"r"(id) : "memory");
}

// Operand lists of the instructions below.
#define NAMES_0                                                                     \
    "%0, %1, %2, %3, %4, %5, %6, %7, "                                              \
    "%8, %9, %10, %11, %12, %13, %14, %15, "                                        \
    "%16, %17, %18, %19, %20, %21, %22, %23, "                                      \
    "%24, %25, %26, %27, %28, %29, %30, %31"
#define NAMES_1                                                                     \
    "%32, %33, %34, %35, %36, %37, %38, %39, "                                      \
    "%40, %41, %42, %43, %44, %45, %46, %47, "                                      \
    "%48, %49, %50, %51, %52, %53, %54, %55, "                                      \
    "%56, %57, %58, %59, %60, %61, %62, %63"
#define NAMES_2                                                                     \
    "%64, %65, %66, %67, %68, %69, %70, %71, "                                      \
    "%72, %73, %74, %75, %76, %77, %78, %79, "                                      \
    "%80, %81, %82, %83, %84, %85, %86, %87, "                                      \
    "%88, %89, %90, %91, %92, %93, %94, %95"
#define NAMES_3                                                                     \
    "%96, %97, %98, %99, %100, %101, %102, %103, "                                  \
    "%104, %105, %106, %107, %108, %109, %110, %111, "                              \
    "%112, %113, %114, %115, %116, %117, %118, %119, "                              \
    "%120, %121, %122, %123, %124, %125, %126, %127"
#define SUMS_4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define SUMS_16(i) SUMS_4(i), SUMS_4(i + 4), SUMS_4(i + 8), SUMS_4(i + 12)
#define SUMS_32(i) SUMS_16(i), SUMS_16(i + 16)
#define NAMES_OF_64 NAMES_0
#define SUMS_OF_64 SUMS_32(0)
#define SHARED_64 "%32, %33, add, 1, 1"
#define SHARED_ADD_64 "%34"
#define HELD_64 "{%32, %33, %34, %35}, %36, add, 1, 1"
#define HELD_ADD_64 "%37"
#define NAMES_OF_112                                                                \
    NAMES_0 ", "                                                                    \
            "%32, %33, %34, %35, %36, %37, %38, %39, "                              \
            "%40, %41, %42, %43, %44, %45, %46, %47, "                              \
            "%48, %49, %50, %51, %52, %53, %54, %55"
#define SUMS_OF_112 SUMS_32(0), SUMS_16(32), SUMS_4(48), SUMS_4(52)
#define SHARED_112 "%56, %57, add, 1, 1"
#define SHARED_ADD_112 "%58"
#define HELD_112 "{%56, %57, %58, %59}, %60, add, 1, 1"
#define HELD_ADD_112 "%61"
#define NAMES_OF_128 NAMES_0 ", " NAMES_1
#define SUMS_OF_128 SUMS_32(0), SUMS_32(32)
#define SHARED_128 "%64, %65, add, 1, 1"
#define SHARED_ADD_128 "%66"
#define HELD_128 "{%64, %65, %66, %67}, %68, add, 1, 1"
#define HELD_ADD_128 "%69"
#define NAMES_OF_192 NAMES_0 ", " NAMES_1 ", " NAMES_2
#define SUMS_OF_192 SUMS_32(0), SUMS_32(32), SUMS_32(64)
#define SHARED_192 "%96, %97, add, 1, 1"
#define SHARED_ADD_192 "%98"
#define HELD_192 "{%96, %97, %98, %99}, %100, add, 1, 1"
#define HELD_ADD_192 "%101"
#define NAMES_OF_256 NAMES_0 ", " NAMES_1 ", " NAMES_2 ", " NAMES_3
#define SUMS_OF_256 SUMS_32(0), SUMS_32(32), SUMS_32(64), SUMS_32(96)
#define SHARED_256 "%128, %129, add, 1, 1"
#define SHARED_ADD_256 "%130"
#define HELD_256 "{%128, %129, %130, %131}, %132, add, 1, 1"
#define HELD_ADD_256 "%133"

// d = A B, or d += A B if `more`. A is in shared memory, or in registers (second form).
#define WGMMA(name, n, type, shared_rows, held_rows)                                \
    __device__ __forceinline__ void name(                                           \
        float (&d)[n / 2], Descriptor a, Descriptor b, bool more)                   \
    {                                                                               \
        asm volatile("{.reg .pred add;\nsetp.ne.b32 add, " SHARED_ADD_##n ", 0;\n"  \
                     "wgmma.mma_async.sync.aligned.m64n" #n type                    \
                     " {" NAMES_OF_##n "}, " SHARED_##n shared_rows ";\n}"          \
                     : SUMS_OF_##n                                                  \
                     : "l"(a), "l"(b), "r"(static_cast<int>(more))                  \
                     : "memory");                                                   \
    }                                                                               \
    __device__ __forceinline__ void name(                                           \
        float (&d)[n / 2], const unsigned (&a)[4], Descriptor b, bool more)         \
    {                                                                               \
        asm volatile("{.reg .pred add;\nsetp.ne.b32 add, " HELD_ADD_##n ", 0;\n"    \
                     "wgmma.mma_async.sync.aligned.m64n" #n type                    \
                     " {" NAMES_OF_##n "}, " HELD_##n held_rows ";\n}"              \
                     : SUMS_OF_##n                                                  \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b),          \
                       "r"(static_cast<int>(more))                                  \
                     : "memory");                                                   \
    }
#define WGMMA_ALL(name, type, shared_rows, held_rows)                               \
    WGMMA(name, 64, type, shared_rows, held_rows)                                   \
    WGMMA(name, 112, type, shared_rows, held_rows)                                  \
    WGMMA(name, 128, type, shared_rows, held_rows)                                  \
    WGMMA(name, 192, type, shared_rows, held_rows)                                  \
    WGMMA(name, 256, type, shared_rows, held_rows)

// Rows of both tiles run along k.
WGMMA_ALL(wgmma_f16, "k16.f32.f16.f16", ", 0, 0", ", 0")
WGMMA_ALL(wgmma_bf16, "k16.f32.bf16.bf16", ", 0, 0", ", 0")
WGMMA_ALL(wgmma_tf32, "k8.f32.tf32.tf32", "", "")
WGMMA_ALL(wgmma_e4m3, "k32.f32.e4m3.e4m3", "", "")
// Rows of A run along k, or A is in registers; rows of B run along n.
WGMMA_ALL(wgmma_f16_rows_of_n, "k16.f32.f16.f16", ", 0, 1", ", 1")
WGMMA_ALL(wgmma_bf16_rows_of_n, "k16.f32.bf16.bf16", ", 0, 1", ", 1")

// Exact sums of 32 products of 8-bit integers.
#define WHOLE_4(i) "+r"(d[i]), "+r"(d[i + 1]), "+r"(d[i + 2]), "+r"(d[i + 3])
#define WHOLE_16(i) WHOLE_4(i), WHOLE_4(i + 4), WHOLE_4(i + 8), WHOLE_4(i + 12)
#define WHOLE_64(i) WHOLE_16(i), WHOLE_16(i + 16), WHOLE_16(i + 32), WHOLE_16(i + 48)
__device__ __forceinline__ void wgmma_s8(
    int (&d)[128], Descriptor a, Descriptor b, bool more)
{
    asm volatile("{.reg .pred add;\nsetp.ne.b32 add, " SHARED_ADD_256 ", 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n256k32.s32.s8.s8"
                 " {" NAMES_OF_256 "}, %128, %129, add;\n}"
                 : WHOLE_64(0), WHOLE_64(64)
                 : "l"(a), "l"(b), "r"(static_cast<int>(more))
                 : "memory");
}
