// Idea: all threads use the same filter: read it from the constant bank.
// From the rung before: the filter is passed by value, as a parameter; a weight is an
// operand of its multiply-add.
// Requires: at most 4 KB of parameters, which is a filter of 1000 weights.
#include "border.cuh"

template <int kDown, int kAcross, Border kBorder>
__global__ void conv2d_constant(
    const float* __restrict__ image, const Filter<kDown, kAcross> parameter,
    float* __restrict__ result, int rows, int cols)
{
    const Filter<kDown, kAcross> filter = weights(parameter);
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
            sum += filter.at[i][j] *
                   pixel<kBorder>(
                       image, row + i - kDown / 2, col + j - kAcross / 2, rows, cols);
        }
    }
    result[static_cast<size_t>(row) * cols + col] = sum;
}
