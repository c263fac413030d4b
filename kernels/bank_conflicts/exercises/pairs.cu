// Transpose a matrix of float2, 8 bytes per element, through a tile without padding.
constexpr int kTile = 32;
constexpr int kLines = 8;

// The column of row y that holds element (y, x): a permutation of 0 to 31 for each y.
__device__ int column(int y, int x)
{
    return x;  // TODO
}

__global__ void pairs(
    const float2* __restrict__ source, float2* __restrict__ target, int rows, int cols)
{
    __shared__ float2 tile[kTile][kTile];
    static_assert(
        sizeof(tile) == kTile * kTile * sizeof(float2), "no padding in this exercise");
    const int tile_row = blockIdx.y * kTile;
    const int tile_col = blockIdx.x * kTile;
    const int lane = threadIdx.x;
    for (int y = threadIdx.y; y < kTile; y += kLines) {
        if (tile_row + y < rows && tile_col + lane < cols) {
            tile[y][column(y, lane)] = source[(tile_row + y) * cols + tile_col + lane];
        }
    }
    __syncthreads();  // the tile is complete before any thread reads from it

    for (int x = threadIdx.y; x < kTile; x += kLines) {
        if (tile_col + x < cols && tile_row + lane < rows) {
            target[(tile_col + x) * rows + tile_row + lane] =
                tile[lane][column(lane, x)];
        }
    }
}
