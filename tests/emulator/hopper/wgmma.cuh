// Products of a warpgroup, 64 x 64 sums of 16 products of halves.
#pragma once

#define SUMS(d)                                                                      \
    "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]),          \
        "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]),    \
        "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]),             \
        "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]),             \
        "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]),             \
        "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
#define MULTIPLY                                                                     \
    "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, "   \
    "%6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, "   \
    "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31}"

// A swizzle of 128 bytes, and 1024 bytes from eight rows of memory to the next eight.
__device__ inline unsigned long long describe(const void* tile) {
    unsigned long long start = (unsigned)__cvta_generic_to_shared(tile);
    return start >> 4 | 1ull << 16 | (1024ull >> 4) << 32 | 1ull << 62;
}
__device__ inline void fence() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ inline void close_group() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int OPEN> __device__ inline void wait_group() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(OPEN) : "memory");
}
// d = A B if `add` is 0, else d += A B; rows of k in memory.
__device__ inline void multiply(float (&d)[32], unsigned long long a,
                                unsigned long long b, int add = 1) {
    asm volatile("{.reg .pred p; setp.ne.b32 p, %34, 0; " MULTIPLY
                 ", %32, %33, p, 1, 1, 0, 0;}"
                 : SUMS(d) : "l"(a), "l"(b), "r"(add) : "memory");
}
// d += A B, A in registers; rows of n in memory.
__device__ inline void weigh(float (&d)[32], const unsigned* a, unsigned long long b) {
    asm volatile(MULTIPLY ", {%32, %33, %34, %35}, %36, 1, 1, 1, 1;"
                 : SUMS(d)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b) : "memory");
}
