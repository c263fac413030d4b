// One warp per block: it copies 32 x 32 floats at a time, and lane l adds up row l.
constexpr int kTile = 32;

__global__ void row_sums(
    const float* __restrict__ source, float* __restrict__ sums, int rows, int cols)
{
    __shared__ float tile[kTile][kTile];
    static_assert(
        sizeof(tile) == kTile * kTile * sizeof(float), "no padding in this exercise");
    const int lane = threadIdx.x;
    const int first = blockIdx.x * kTile;
    float sum = 0.0f;
    for (int left = 0; left < cols; left += kTile) {
        for (int y = 0; y < kTile; ++y) {
            const bool inside = first + y < rows && left + lane < cols;
            tile[y][lane] = inside ? source[(first + y) * cols + left + lane] : 0.0f;
        }
        __syncthreads();  // the tile is complete before any lane reads from it
        for (int j = 0; j < kTile; ++j) {
            sum += tile[lane][(j + lane) % kTile];  // lane l starts at column l
        }
        __syncthreads();  // every lane has read its row before it is replaced
    }
    if (first + lane < rows) {
        sums[first + lane] = sum;
    }
}
