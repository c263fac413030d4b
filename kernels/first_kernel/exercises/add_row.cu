// Adds `row` to every row of the matrix x; blocks are 32 threads wide and 8 high.
// Correct for a matrix that one block covers exactly. Make it correct for every size.
__global__ void add_row(
    const float* __restrict__ x, const float* __restrict__ row, float* __restrict__ y,
    int rows, int cols)
{
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    int r = threadIdx.y;
    if (c < cols) {
        y[r * cols + c] = x[r * cols + c] + row[c];
    }
}
