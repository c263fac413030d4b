// Idea: blocks that run at the same time should write neighbouring addresses.
// From the rung before: blockIdx.x counts tiles down the source, so neighbouring blocks
// write neighbouring tiles of one row of the target.
// Requires: a block of kTile x kRows threads.
constexpr int kTile = 32;
constexpr int kRows = 8;

__global__ void transpose_reordered(
    const float* __restrict__ source, float* __restrict__ target, int rows, int cols)
{
    __shared__ float tile[kTile][kTile];

    const int tile_row = blockIdx.x * kTile;
    const int tile_col = blockIdx.y * kTile;
    int col = tile_col + threadIdx.x;
    int row = tile_row + threadIdx.y;
    for (int j = 0; j < kTile; j += kRows) {
        if (row + j < rows && col < cols) {
            tile[threadIdx.y + j][threadIdx.x ^ (threadIdx.y + j)] =
                source[static_cast<size_t>(row + j) * cols + col];
        }
    }
    __syncthreads();  // the whole tile is stored before any thread reads from it

    col = tile_row + threadIdx.x;
    row = tile_col + threadIdx.y;
    for (int j = 0; j < kTile; j += kRows) {
        if (row + j < cols && col < rows) {
            target[static_cast<size_t>(row + j) * rows + col] =
                tile[threadIdx.x][(threadIdx.y + j) ^ threadIdx.x];
        }
    }
}
