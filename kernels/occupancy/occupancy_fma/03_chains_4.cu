// Idea: four chains per thread: as many as a multiply-add has cycles of latency.
// From the rung before: twice the chains.
// Requires: nothing.
#include "chains.cuh"

__global__ void fma_chains_4(
    const float* __restrict__ source, float* __restrict__ target, size_t n, float b)
{
    multiply_add_chains<4>(source, target, n, b);
}
