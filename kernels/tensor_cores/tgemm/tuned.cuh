// The tuned product: both factors are split beforehand. A row of a slice holds its high
// parts, then its low ones.
#pragma once

#include "../../common/mma.cuh"
#include "turns.cuh"

struct Left {
    using Element = unsigned short;
    static constexpr int kPitch = 2 * kSlice;
    int read, lane;  // the row whose address this lane gives to ldmatrix

    static __device__ __forceinline__ int row_of(int lane) { return lane / 4; }

    __device__ __forceinline__ Left(const Result&, int, int warp, int lane)
        : read(warp * 16 + lane % 16), lane(lane)
    {
    }

    __device__ __forceinline__ void fragments(const Element* a, unsigned (&high)[2][4],
                                              unsigned (&low)[2][4]) const
    {
        const Element* row = a + read * kPitch;
#pragma unroll
        for (int s = 0; s < 2; ++s) {
            const int piece = 2 * s + lane / 16;
            load_matrices(high[s], row + (piece ^ read % 8) * 8);
            load_matrices(low[s], row + ((4 + piece) ^ read % 8) * 8);
        }
    }
};
