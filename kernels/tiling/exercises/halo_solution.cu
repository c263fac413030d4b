// The sum of the 5 x 5 floats around each element, with zeros outside the grid.
constexpr int kTile = 16;
constexpr int kRadius = 2;
constexpr int kWide = kTile + 2 * kRadius;

__global__ void neighbours(
    const float* __restrict__ source, float* __restrict__ target, int rows, int cols)
{
    __shared__ float tile[kWide][kWide];
    const int first_row = blockIdx.y * kTile;
    const int first_col = blockIdx.x * kTile;
    const int thread = threadIdx.y * kTile + threadIdx.x;
    for (int i = thread; i < kWide * kWide; i += kTile * kTile) {
        const int y = i / kWide, x = i % kWide;
        const int row = first_row - kRadius + y, col = first_col - kRadius + x;
        const bool inside = row >= 0 && row < rows && col >= 0 && col < cols;
        tile[y][x] = inside ? source[row * cols + col] : 0.0f;
    }
    __syncthreads();  // tile and halo are loaded before any thread reads them

    float sum = 0.0f;
    for (int y = 0; y <= 2 * kRadius; ++y) {
        for (int x = 0; x <= 2 * kRadius; ++x) {
            sum += tile[threadIdx.y + y][threadIdx.x + x];
        }
    }
    const int row = first_row + threadIdx.y, col = first_col + threadIdx.x;
    if (row < rows && col < cols) {
        target[row * cols + col] = sum;
    }
}
