// The products of one slice.
#pragma once
#include "../../common/hopper/wgmma.cuh"
#include "slices.cuh"

// Starts a warpgroup's products of 64 rows of A with all columns of B, both of one
// slice, as one group: d = A B, or d += A B if `more`.
template <int kSums>
__device__ __forceinline__ void multiply_slice(float (&d)[kSums],
                                               const unsigned short* rows,
                                               const unsigned short* columns, bool more)
{
    const Descriptor a = describe_rows_of_k(rows);
    const Descriptor b = describe_rows_of_n(columns, kBoxBytes);
    wgmma_fence();
#pragma unroll
    for (int s = 0; s < kDepth / 16; ++s)
        wgmma_f16_rows_of_n(d, a + 2 * s, b + 128 * s, more || s > 0);
    wgmma_commit();
}
