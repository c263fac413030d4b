// Idea: as many lanes for a row as it has work for.
// From the rung before: groups of kLanes lanes, chosen by the mean length of a row: a
// warp takes 32 / kLanes rows.
// Requires: kLanes a power of two up to 32; blocks of kThreads threads; columns and
// values at multiples of 16 bytes.
#include "row.cuh"

constexpr int kThreads = 256;

template <int kLanes>
__global__ void __launch_bounds__(kThreads)
    csr_groups(const int* __restrict__ offsets, const int* __restrict__ columns,
               const float* __restrict__ values, const float* __restrict__ x,
               float* __restrict__ y, int m)
{
    sum_row<kLanes, kThreads>(offsets, columns, values, x, y, m);
}
