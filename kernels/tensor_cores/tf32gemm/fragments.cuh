// B's transposed fragments: a consumer lane's loads from a slice.
#pragma once
#include "../../common/hopper/tma.cuh"
#include "../../common/hopper/wgmma.cuh"
#include "../place.cuh"

constexpr int kDepth = 32;  // steps of k in a slice: 128 bytes of floats

// A lane's two columns among the 64 of its warpgroup. B's boxes have 32 columns in rows
// of 128 bytes, whose pieces of 16 bytes are swizzled: piece p of row r is at
// p ^ r % 8.
struct Lane {
    int row;  // step of k, among four
    int column;
    int low, high;  // index of its columns in that row, and four rows below

    __device__ __forceinline__ explicit Lane(int thread)
    {
        const int warp = thread / 32, g = thread % 32 / 4;
        // Lanes 0 to 15 have pieces c and c + 4 in four rows, which the swizzle moves
        // by 0 to 3, so all eight are in different banks.
        const int piece = warp % 2 * 2 + g / 4 + g / 2 % 2 * 4;
        const int box = warp / 2;
        row = thread % 4;
        column = box * 32 + piece * 4 + g % 2 * 2;
        low = box * 32 * kDepth + row * 32 + (piece ^ row) * 4 + g % 2 * 2;
        high = box * 32 * kDepth + (row + 4) * 32 + (piece ^ (row + 4)) * 4 + g % 2 * 2;
    }
};

// A slice of the lane's columns, in the layout of four instructions.
struct Fragments {
    unsigned at[kDepth / 8][4];

    __device__ __forceinline__ void load(const float* columns, const Lane& lane)
    {
#pragma unroll
        for (int s = 0; s < kDepth / 8; ++s) {
            const float* const from = columns + s * 256;
            const uint2 low = *reinterpret_cast<const uint2*>(from + lane.low);
            const uint2 high = *reinterpret_cast<const uint2*>(from + lane.high);
            at[s][0] = low.x, at[s][1] = low.y;
            at[s][2] = high.x, at[s][3] = high.y;
        }
    }
};
