// The sum of the 3 x 3 pixels around each pixel. Beyond the border the image is
// mirrored about the centre of its last pixel: the pixel before the first is the
// second.
__device__ int inside(int i, int n)
{
    return n - 1 - abs(n - 1 - abs(i));
}

__global__ void sum9(
    const float* __restrict__ image, float* __restrict__ result, int rows, int cols)
{
    const int row = blockIdx.y * blockDim.y + threadIdx.y,
              col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows || col >= cols) {
        return;
    }
    float sum = 0.0f;
    for (int i = -1; i <= 1; ++i) {
        for (int j = -1; j <= 1; ++j) {
            sum += image[inside(row + i, rows) * cols + inside(col + j, cols)];
        }
    }
    result[row * cols + col] = sum;
}
