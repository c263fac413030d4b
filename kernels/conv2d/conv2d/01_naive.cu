// Idea: one thread per output reads all pixels and weights under it from global memory.
// From the rung before: the first rung.
// Requires: the extents of the filter as template arguments, so that the loops unroll.
#include "border.cuh"

template <int kDown, int kAcross, Border kBorder>
__global__ void conv2d_naive(
    const float* __restrict__ image, const float* __restrict__ filter,
    float* __restrict__ result, int rows, int cols)
{
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    const int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows || col >= cols) {
        return;
    }
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < kDown; ++i) {
#pragma unroll
        for (int j = 0; j < kAcross; ++j) {
            sum += filter[i * kAcross + j] *
                   pixel<kBorder>(
                       image, row + i - kDown / 2, col + j - kAcross / 2, rows, cols);
        }
    }
    result[static_cast<size_t>(row) * cols + col] = sum;
}
