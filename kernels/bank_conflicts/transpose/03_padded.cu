// Idea: one unused float at the end of a tile's row shifts the next row by one bank.
// From the rung before: the tile is kTile + 1 floats wide; nothing else changes.
// Requires: a block of kTile x kRows threads.
constexpr int kTile = 32;
constexpr int kRows = 8;

__global__ void transpose_padded(
    const float* __restrict__ source, float* __restrict__ target, int rows, int cols)
{
    __shared__ float tile[kTile][kTile + 1];  // the last column is never used

    const int tile_col = blockIdx.x * kTile;
    const int tile_row = blockIdx.y * kTile;
    int col = tile_col + threadIdx.x;
    int row = tile_row + threadIdx.y;
    for (int j = 0; j < kTile; j += kRows) {
        if (row + j < rows && col < cols) {
            tile[threadIdx.y + j][threadIdx.x] =
                source[static_cast<size_t>(row + j) * cols + col];
        }
    }
    __syncthreads();  // the whole tile is stored before any thread reads from it

    col = tile_row + threadIdx.x;
    row = tile_col + threadIdx.y;
    for (int j = 0; j < kTile; j += kRows) {
        if (row + j < cols && col < rows) {
            target[static_cast<size_t>(row + j) * rows + col] =
                tile[threadIdx.x][threadIdx.y + j];
        }
    }
}
