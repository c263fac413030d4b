// Idea: the same 48 chains in 32 registers, for full occupancy.
// From the rung before: __launch_bounds__(1024, 2): two blocks of 1024 threads must fit
// on an SM, so the compiler spills to local memory.
// Requires: blocks of up to 1024 threads.
#include "chains.cuh"

__global__ void __launch_bounds__(1024, 2) fma_capped_48(
    const float* __restrict__ source, float* __restrict__ target, size_t n, float b)
{
    multiply_add_chains<48>(source, target, n, b);
}
