// Idea: transpose the tile in shared memory, so both loads and stores run along rows.
// From the rung before: a shared tile between load and store; the lanes of a warp now
// store along a row of the target.
// Requires: a block of kTile x kRows threads.
constexpr int kTile = 32;
constexpr int kRows = 8;

__global__ void transpose_tiled(
    const float* __restrict__ source, float* __restrict__ target, int rows, int cols)
{
    __shared__ float tile[kTile][kTile];

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
