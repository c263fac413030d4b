// Idea: eight 16-byte loads in flight per thread, for very few warps.
// From the rung before: twice the pieces, twice the registers.
// Requires: both arrays aligned to 16 bytes.
#include "pieces.cuh"

__global__ void copy_eight_quads(
    const float* __restrict__ source, float* __restrict__ target, size_t n)
{
    copy_pieces<float4, 8>(source, target, n);
}
