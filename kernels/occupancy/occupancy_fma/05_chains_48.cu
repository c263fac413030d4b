// Idea: 48 chains per thread, whose registers leave space for only a few warps.
// From the rung before: six times the chains.
// Requires: nothing.
#include "chains.cuh"

__global__ void fma_chains_48(
    const float* __restrict__ source, float* __restrict__ target, size_t n, float b)
{
    multiply_add_chains<48>(source, target, n, b);
}
