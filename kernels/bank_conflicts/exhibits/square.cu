// Exhibit: a transpose that takes its width from the grid, rewritten from the article
// "CUDA Kernel optimizations".
constexpr int kTile = 32;
constexpr int kRows = 8;

__global__ void transpose_square(
    const float* __restrict__ source, float* __restrict__ target)
{
    __shared__ float tile[kTile][kTile + 1];
    const int width = gridDim.x * kTile;

    int col = blockIdx.x * kTile + threadIdx.x;
    int row = blockIdx.y * kTile + threadIdx.y;
    for (int j = 0; j < kTile; j += kRows) {
        tile[threadIdx.y + j][threadIdx.x] = source[(row + j) * width + col];
    }
    __syncthreads();

    col = blockIdx.y * kTile + threadIdx.x;
    row = blockIdx.x * kTile + threadIdx.y;
    for (int j = 0; j < kTile; j += kRows) {
        target[(row + j) * width + col] = tile[threadIdx.x][threadIdx.y + j];
    }
}
