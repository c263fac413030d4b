// Pieces of C, which the copy engine stores from shared memory.
#pragma once
#include "../../common/hopper/tma.cuh"
#include "../../common/hopper/wgmma.cuh"

constexpr int kPiece = 32;  // columns of a piece: rows of 128 bytes

// Writes a warpgroup's 64 x kPiece sums, 16 per thread, to shared memory in the
// 128-byte swizzle that the copy engine reads. Half a warp stores four rows of 32 bytes
// at once. Rows 2r and 2r + 1 swizzle pairs of quads alike, so their stores would
// conflict in eight banks; odd rows therefore store their pairs in another order.
__device__ __forceinline__ void put_piece(float* piece, const float* sums)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x % 128 / 32;
    const bool odd = lane / 4 % 2 == 1;
#pragma unroll
    for (int j = 0; j < kPiece / 8; ++j)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int row = warp * 16 + h * 8 + lane / 4, col = lane % 4 * 2;
            const int pair = odd ? j ^ 2 : j, quad = 2 * pair + col / 4 ^ row % 8;
            const float low = sums[4 * j + 2 * h], high = sums[4 * j + 2 * h + 1];
            const float other_low = sums[4 * (j ^ 2) + 2 * h];
            const float other_high = sums[4 * (j ^ 2) + 2 * h + 1];
            float* const to = piece + row * kPiece + quad * 4 + col % 4;
            *reinterpret_cast<float2*>(to) = {odd ? other_low : low,
                                              odd ? other_high : high};
        }
    fence_proxy_async();
}
