// Idea: read along rows and write along columns, through registers only.
// From the rung before: the first rung.
// Requires: a block of kTile x kRows threads.
constexpr int kTile = 32;
constexpr int kRows = 8;

__global__ void transpose_naive(
    const float* __restrict__ source, float* __restrict__ target, int rows, int cols)
{
    const int col = blockIdx.x * kTile + threadIdx.x;
    const int row = blockIdx.y * kTile + threadIdx.y;
    for (int j = 0; j < kTile; j += kRows) {
        if (row + j < rows && col < cols) {
            target[static_cast<size_t>(col) * rows + row + j] =
                source[static_cast<size_t>(row + j) * cols + col];
        }
    }
}
