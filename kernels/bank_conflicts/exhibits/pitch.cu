// The tiled transpose with a tile of any width: kPitch sets how many lanes conflict
// when a warp reads a column.
constexpr int kTile = 32;
constexpr int kRows = 8;

template <int kPitch>
__global__ void transpose_pitch(
    const float* __restrict__ source, float* __restrict__ target, int rows, int cols)
{
    static_assert(kPitch >= kTile, "a row of the tile must hold a row of the matrix");
    __shared__ float tile[kTile][kPitch];

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
