// A block copies 64 rows of 32 columns into shared memory and writes them transposed. A
// warp reads 32 rows of one column at a time.
constexpr int kRows = 64;
constexpr int kCols = 32;
constexpr int kWarp = 32;
constexpr int kPitch = kCols + 1;  // any odd width of at least kCols floats

__global__ void columns(
    const float* __restrict__ source, float* __restrict__ target, int rows, int cols)
{
    __shared__ float tile[kRows][kPitch];
    const int tile_row = blockIdx.y * kRows;
    const int tile_col = blockIdx.x * kCols;
    const int lane = threadIdx.x;
    for (int y = threadIdx.y; y < kRows; y += blockDim.y) {
        if (tile_row + y < rows && tile_col + lane < cols) {
            tile[y][lane] = source[(tile_row + y) * cols + tile_col + lane];
        }
    }
    __syncthreads();  // the tile is complete before any thread reads from it

    for (int c = threadIdx.y; c < kCols; c += blockDim.y) {
        for (int y = lane; y < kRows; y += kWarp) {
            if (tile_row + y < rows && tile_col + c < cols) {
                target[(tile_col + c) * rows + tile_row + y] = tile[y][c];
            }
        }
    }
}
