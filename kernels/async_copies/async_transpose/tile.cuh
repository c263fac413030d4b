// A tile of 64 x 64 floats in shared memory as two boxes of the copy engine, side by
// side: 64 rows of 32 floats, the widest row that the engine swizzles.
#pragma once

constexpr int kTile = 64;
constexpr int kBoxQuads = 8;  // float4s per row of a box
constexpr int kBox = kTile * kBoxQuads;
constexpr int kTileThreads = 256;
constexpr int kBytes = 4 * kTile * kTile;

// The index of float4 `quad` of a row, in the copy engine's layout without a swizzle or
// with the 128-byte swizzle.
template <bool kSwizzled> __device__ __forceinline__ int slot(int row, int quad)
{
    const int within = quad % kBoxQuads;
    return quad / kBoxQuads * kBox + row * kBoxQuads +
           (kSwizzled ? within ^ row % 8 : within);
}

// The square of 4 x 4 floats that a thread transposes: four rows of one quad.
struct Square {
    int quad, line;

    template <bool kSwizzled>
    __device__ void read(float4 (&part)[4], const float4* tile) const
    {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            part[i] = tile[slot<kSwizzled>(line * 4 + i, quad)];
        }
    }

    template <bool kSwizzled>
    __device__ void write(float4* tile, const float4 (&part)[4]) const
    {
        const float4 (&p)[4] = part;
        tile[slot<kSwizzled>(quad * 4 + 0, line)] = {p[0].x, p[1].x, p[2].x, p[3].x};
        tile[slot<kSwizzled>(quad * 4 + 1, line)] = {p[0].y, p[1].y, p[2].y, p[3].y};
        tile[slot<kSwizzled>(quad * 4 + 2, line)] = {p[0].z, p[1].z, p[2].z, p[3].z};
        tile[slot<kSwizzled>(quad * 4 + 3, line)] = {p[0].w, p[1].w, p[2].w, p[3].w};
    }
};

// A warp has two rows of squares.
__device__ __forceinline__ Square in_rows(int thread)
{
    return {thread % 16, thread / 16};
}

// Eight lanes that access shared memory together have squares on a diagonal: no two are
// in the same column or row.
__device__ __forceinline__ Square on_diagonals(int thread)
{
    const int lane = thread % 8, other = thread / 8 % 8;
    return {lane + thread / 128 * 8, (lane ^ other) + thread / 64 % 2 * 8};
}
