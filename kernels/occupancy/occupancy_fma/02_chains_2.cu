// Idea: two chains per thread: while one waits, the other issues.
// From the rung before: twice the independent work per warp, and half the warps.
// Requires: nothing.
#include "chains.cuh"

__global__ void fma_chains_2(
    const float* __restrict__ source, float* __restrict__ target, size_t n, float b)
{
    multiply_add_chains<2>(source, target, n, b);
}
