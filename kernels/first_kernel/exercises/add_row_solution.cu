// A matrix in two dimensions: y works like x, and each dimension has its own guard.
__global__ void add_row(
    const float* __restrict__ x, const float* __restrict__ row, float* __restrict__ y,
    int rows, int cols)
{
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    int r = blockIdx.y * blockDim.y + threadIdx.y;
    if (c < cols && r < rows) {
        y[r * cols + c] = x[r * cols + c] + row[c];
    }
}
