// Idea: eight chains per thread.
// From the rung before: twice the chains.
// Requires: nothing.
#include "chains.cuh"

__global__ void fma_chains_8(
    const float* __restrict__ source, float* __restrict__ target, size_t n, float b)
{
    multiply_add_chains<8>(source, target, n, b);
}
