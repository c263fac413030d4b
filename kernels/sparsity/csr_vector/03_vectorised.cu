// Idea: 16 bytes of columns and of values per load.
// From the rung before: from the row's first multiple of four on, a lane takes four
// neighbours at once; the few elements before and after are taken one by one.
// Requires: blocks of kThreads threads; columns and values aligned to 16 bytes.
#include "row.cuh"

constexpr int kThreads = 256;

extern "C" __global__ void __launch_bounds__(kThreads)
    csr_vectorised(const int* __restrict__ offsets, const int* __restrict__ columns,
                   const float* __restrict__ values, const float* __restrict__ x,
                   float* __restrict__ y, int m)
{
    sum_row<32, kThreads>(offsets, columns, values, x, y, m);
}
