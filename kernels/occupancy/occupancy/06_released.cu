// Idea: the same eight loads, with enough registers to keep all of them in flight.
// From the rung before: __launch_bounds__(1024, 1): one block per SM is enough, so a
// thread may have up to 64 registers.
// Requires: both arrays aligned to 16 bytes; blocks of up to 1024 threads.
#include "pieces.cuh"

__global__ void __launch_bounds__(1024, 1) copy_released(
    const float* __restrict__ source, float* __restrict__ target, size_t n)
{
    copy_pieces<float4, 8>(source, target, n);
}
