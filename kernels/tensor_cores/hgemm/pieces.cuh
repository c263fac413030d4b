// Pieces of C that go through shared memory, from where the copy engine stores them.
#pragma once
#include "../../common/hopper/tma.cuh"
#include "../../common/hopper/wgmma.cuh"

constexpr int kPiece = 32;  // columns of a piece: rows of 128 bytes

// Writes a warpgroup's 64 x kPiece sums, of which a thread has 16, swizzled by 128
// bytes, where the copy engine can read them.
__device__ __forceinline__ void put_piece(float* piece, const float* sums)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x % 128 / 32;
#pragma unroll
    for (int j = 0; j < kPiece / 8; ++j)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int row = warp * 16 + h * 8 + lane / 4, col = lane % 4 * 2;
            const int quad = 2 * j + col / 4 ^ row % 8;
            float* const to = piece + row * kPiece + quad * 4 + col % 4;
            *reinterpret_cast<float2*>(to) = {sums[4 * j + 2 * h],
                                              sums[4 * j + 2 * h + 1]};
        }
    fence_proxy_async();
}
