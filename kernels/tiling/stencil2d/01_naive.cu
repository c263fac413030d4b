// Idea: one thread per output reads its (2 radius + 1)^2 neighbours from global memory.
// From the rung before: the first rung.
// Requires: the radius as a template argument, so that the loops unroll and the weights
// become constants; values outside the grid are zero.
#include "../../common/stencil_weights.cuh"

template <int kRadius>
__global__ void stencil2d_naive(
    const float* __restrict__ source, float* __restrict__ target, int rows, int cols)
{
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    const int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows && col < cols) {
        float sum = 0.0f;
#pragma unroll
        for (int down = -kRadius; down <= kRadius; ++down) {
#pragma unroll
            for (int across = -kRadius; across <= kRadius; ++across) {
                const int r = row + down, c = col + across;
                if (r >= 0 && r < rows && c >= 0 && c < cols) {
                    sum += weight(down, across) *
                           source[static_cast<size_t>(r) * cols + c];
                }
            }
        }
        target[static_cast<size_t>(row) * cols + col] = sum;
    }
}
