// Idea: one thread per output reads its 2 radius + 1 neighbours from global memory.
// From the rung before: the first rung.
// Requires: the radius as a template argument, so that the loop unrolls and the weights
// become constants; values outside the array are zero.
#include "../../common/stencil_weights.cuh"

template <int kRadius>
__global__ void stencil1d_naive(
    const float* __restrict__ source, float* __restrict__ target, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float sum = 0.0f;
#pragma unroll
        for (int offset = -kRadius; offset <= kRadius; ++offset) {
            const int at = i + offset;
            if (at >= 0 && at < n) {
                sum += weight(offset) * source[at];
            }
        }
        target[i] = sum;
    }
}
