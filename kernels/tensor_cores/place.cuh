// The order of a product's tiles, and a warpgroup's stores of its sums.
#pragma once

constexpr int kGroup = 8;  // rows of tiles that run at the same time

// Row and column of a tile among `down` x `across`. Tiles are numbered down through
// kGroup rows before the next column, so that blocks that run together share rows of A
// and columns of B in the L2 cache.
__device__ __forceinline__ int2 walk(int index, int down, int across)
{
    const int group = index / (kGroup * across), within = index % (kGroup * across);
    const int high = min(kGroup, down - group * kGroup);
    return {group * kGroup + within % high, within / high};
}

template <int kRows, int kCols> __device__ __forceinline__ int tiles_of(int M, int N)
{
    return (M + kRows - 1) / kRows * ((N + kCols - 1) / kCols);
}

// The first row and column of a tile of kRows x kCols.
template <int kRows, int kCols>
__device__ __forceinline__ int2 place_of_tile(int index, int M, int N)
{
    const int2 at = walk(index, (M + kRows - 1) / kRows, (N + kCols - 1) / kCols);
    return {at.x * kRows, at.y * kCols};
}

// Writes two sums of a row if `inside`, with one predicated instruction: the compiler
// would branch around each. C is not read soon, so the L2 cache may evict it first
// (.cs) and keep A and B.
__device__ __forceinline__ void store_if(bool inside, float* to, float x, float y)
{
    asm volatile("{\n"
                 ".reg .pred inside;\n"
                 "setp.ne.b32 inside, %0, 0;\n"
                 "@inside st.global.cs.v2.f32 [%1], {%2, %3};\n"
                 "}" ::"r"(static_cast<int>(inside)),
                 "l"(to), "f"(x), "f"(y)
                 : "memory");
}

// Writes a warpgroup's 64 x kCols sums, from row `y` and column `x` of C. A thread has
// pairs of neighbouring columns; N is even.
template <int kCols>
__device__ __forceinline__ void store_rows(float* __restrict__ C,
                                           const float (&d)[kCols / 2], int y, int x,
                                           int M, int N)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x % 128 / 32;
    y += warp * 16 + lane / 4;
    x += lane % 4 * 2;
#pragma unroll
    for (int h = 0; h < 2; ++h, y += 8) {
        float* const to = C + static_cast<size_t>(y) * N + x;
#pragma unroll
        for (int j = 0; j < kCols; j += 8)
            store_if(y < M && x + j < N, to + j, d[j / 2 + 2 * h],
                     d[j / 2 + 2 * h + 1]);
    }
}
