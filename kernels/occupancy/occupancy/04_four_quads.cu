// Idea: four 16-byte loads in flight per thread.
// From the rung before: more accesses and wider ones; the loaded data take 16
// registers.
// Requires: both arrays aligned to 16 bytes.
#include "pieces.cuh"

__global__ void copy_four_quads(
    const float* __restrict__ source, float* __restrict__ target, size_t n)
{
    copy_pieces<float4, 4>(source, target, n);
}
