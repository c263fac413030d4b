// Idea: 16 bytes per access: transpose 4 x 4 floats in registers, then tiles.
// From the rung before: a 64 x 64 tile, swizzled; four float4 loads in flight per
// thread; float4 into and out of shared memory.
// Requires: a block of kThreads threads; both arrays aligned to 16 bytes; kWidth = 4
// where rows and cols are multiples of 4, kWidth = 1 otherwise.
#include "../../common/quads.cuh"

constexpr int kTile = 64;
constexpr int kQuads = kTile / 4;
constexpr int kThreads = kQuads * kQuads;

// The index of quad q in row c of the transposed tile. Eight lanes that each store a
// quad to a different row (c / 4 differs) touch all 32 banks once; so do eight lanes
// that load eight quads of one row.
__device__ int slot(int c, int q)
{
    return c * kQuads + (q ^ (c / 4 % 8));
}

template <int kWidth>
__global__ void __launch_bounds__(kThreads) transpose_vectorised(
    const float* __restrict__ source, float* __restrict__ target, int rows, int cols)
{
    static_assert(
        kWidth == 4 || kWidth == 1, "accesses are 16 bytes wide, or single floats");
    __shared__ float4 tile[kTile * kQuads];
    const int tile_row = blockIdx.x * kTile;
    const int tile_col = blockIdx.y * kTile;
    const int quad = threadIdx.x % kQuads;
    const int line = threadIdx.x / kQuads;

    const int row = tile_row + line * 4;
    const int col = tile_col + quad * 4;
    float4 part[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int available = row + i < rows ? cols - col : 0;
        part[i] = load_quad<kWidth>(
            source + static_cast<size_t>(row + i) * cols + col, available);
    }
    tile[slot(quad * 4 + 0, line)] = {part[0].x, part[1].x, part[2].x, part[3].x};
    tile[slot(quad * 4 + 1, line)] = {part[0].y, part[1].y, part[2].y, part[3].y};
    tile[slot(quad * 4 + 2, line)] = {part[0].z, part[1].z, part[2].z, part[3].z};
    tile[slot(quad * 4 + 3, line)] = {part[0].w, part[1].w, part[2].w, part[3].w};
    __syncthreads();  // the transposed tile is complete before any thread reads it

#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int c = line + i * kQuads;
        const int available = tile_col + c < cols ? rows - (tile_row + quad * 4) : 0;
        float* to =
            target + static_cast<size_t>(tile_col + c) * rows + tile_row + quad * 4;
        store_quad<kWidth>(to, tile[slot(c, quad)], available);
    }
}
