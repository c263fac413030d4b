// Exhibit: a barrier that not every thread reaches. Threads outside the matrix return
// at once, to save work.
constexpr int kTile = 32;
constexpr int kRows = 8;

__global__ void transpose_early(
    const float* __restrict__ source, float* __restrict__ target, int rows, int cols)
{
    __shared__ float tile[kTile][kTile + 1];
    const int col = blockIdx.x * kTile + threadIdx.x;
    const int row = blockIdx.y * kTile + threadIdx.y;
    if (col >= cols) return;

    for (int j = 0; j < kTile; j += kRows) {
        if (row + j < rows) {
            tile[threadIdx.y + j][threadIdx.x] = source[(row + j) * cols + col];
        }
    }
    __syncthreads();

    const int turned_col = blockIdx.y * kTile + threadIdx.x;
    const int turned_row = blockIdx.x * kTile + threadIdx.y;
    for (int j = 0; j < kTile; j += kRows) {
        if (turned_row + j < cols && turned_col < rows) {
            target[(turned_row + j) * rows + turned_col] =
                tile[threadIdx.x][threadIdx.y + j];
        }
    }
}
