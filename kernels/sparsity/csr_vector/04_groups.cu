// Idea: give each row only as many lanes as it has work for.
// From the rung before: groups of kLanes lanes, chosen by the mean length of a row, so
// a warp takes 32 / kLanes rows.
// Requires: kLanes a power of two up to 32; blocks of kThreads threads; columns and
// values aligned to 16 bytes.
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
