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
    float sum[kHigh] = {};
#pragma unroll
    for (int y = -1; y <= kHigh; ++y) {
        const float line = pixel(image, first + y, col - 1, rows, cols) +
                           pixel(image, first + y, col, rows, cols) +
                           pixel(image, first + y, col + 1, rows, cols);
        // Row y of the pixels belongs to the outputs y - 1, y and y + 1 of the thread.
#pragma unroll
        for (int h = 0; h < kHigh; ++h) {
            if (h - 1 <= y && y <= h + 1) {
                sum[h] += line;
            }
        }
    }
#pragma unroll
    for (int h = 0; h < kHigh; ++h) {
        if (first + h < rows && col < cols) {
            result[(first + h) * cols + col] = sum[h];
        }
    }
}
