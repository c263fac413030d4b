// The sum of the 3 x 3 pixels around each pixel, with zeros beyond the border. A thread
// computes kHigh outputs of a column.
constexpr int kHigh = 4;

__device__ float pixel(const float* image, int row, int col, int rows, int cols)
{
    return row >= 0 && row < rows && col >= 0 && col < cols ? image[row * cols + col]
                                                            : 0.0f;
}

__global__ void sum9_column(
    const float* __restrict__ image, float* __restrict__ result, int rows, int cols)
{
    const int col = blockIdx.x * blockDim.x + threadIdx.x;
    const int first = blockIdx.y * kHigh;
    // TODO: four outputs need six rows of three pixels, but each pixel is loaded up to
    // three times. Load it once.
#pragma unroll 1
    for (int h = 0; h < kHigh; ++h) {
        float sum = 0.0f;
        for (int i = -1; i <= 1; ++i) {
            for (int j = -1; j <= 1; ++j) {
                sum += pixel(image, first + h + i, col + j, rows, cols);
            }
        }
        if (first + h < rows && col < cols) {
            result[(first + h) * cols + col] = sum;
        }
    }
}
