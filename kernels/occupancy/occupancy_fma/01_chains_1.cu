// Idea: one chain per thread: a warp waits for each multiply-add.
// From the rung before: the first rung.
// Requires: nothing.
#include "chains.cuh"

__global__ void fma_chains_1(
    const float* __restrict__ source, float* __restrict__ target, size_t n, float b)
{
    multiply_add_chains<1>(source, target, n, b);
}
