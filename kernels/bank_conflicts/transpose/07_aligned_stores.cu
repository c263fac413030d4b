// Idea: at any width, a row of a tile begins where a sector of the target does.
// From the rung before: single floats instead of quads, but eighteen loads in flight
// per thread; a tile has seven more rows of the source, and each row of the target
// takes the 64 of them that fill whole sectors.
// Requires: a block of kThreads threads.
constexpr int kTile = 64;
constexpr int kSector = 8;  // floats
constexpr int kHalo = kSector - 1;
constexpr int kThreads = 256;
constexpr int kLines = kThreads / kTile;  // rows that the block loads at once
constexpr int kLoads = (kTile + kHalo + kLines - 1) / kLines;

__global__ void __launch_bounds__(kThreads) transpose_aligned_stores(
    const float* __restrict__ source, float* __restrict__ target, int rows, int cols)
{
    __shared__ float tile[kLoads * kLines][kTile + 1];
    const int tile_row = blockIdx.x * kTile - kHalo;  // below 0 in the first blocks
    const int tile_col = blockIdx.y * kTile;
    const int across = threadIdx.x % kTile;
    const int line = threadIdx.x / kTile;

    float part[kLoads];
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
        const int row = tile_row + line + i * kLines, col = tile_col + across;
        const bool inside = row >= 0 && row < rows && col < cols;
        part[i] = inside ? source[static_cast<size_t>(row) * cols + col] : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
        tile[line + i * kLines][across] = part[i];
    }
    __syncthreads();  // the whole tile is stored before any thread reads from it

    const size_t begin = reinterpret_cast<size_t>(target) / sizeof(float);
#pragma unroll
    for (int j = line; j < kTile; j += kLines) {
        const size_t start = static_cast<size_t>(tile_col + j) * rows;
        const int past_sector = (begin + start) % kSector;
        const int at = across + kHalo - past_sector;
        const int col = tile_row + at;
        if (tile_col + j < cols && col >= 0 && col < rows) {
            target[start + col] = tile[at][j];
        }
    }
}
