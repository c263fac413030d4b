// Idea: a block loads its tile and a halo of K / 2 floats into shared memory.
// From the rung before: neighbours come from the tile, and weights are also in shared
// memory; borders are checked only while loading.
// Requires: a block of kThreads = kTile^3 threads and (kTile + K - 1)^3 + K^3 floats of
// shared memory, the latter rounded up to whole float4s because the compiler reads
// neighbouring weights together.
constexpr int kTile = 8;
constexpr int kThreads = 512;
static_assert(kThreads == kTile * kTile * kTile, "one thread per output of the tile");

template <int K>
__global__ void __launch_bounds__(kThreads)
    conv3d_tiled(const float* __restrict__ source, const float* __restrict__ weights,
                 float* __restrict__ target, int n)
{
    constexpr int kRadius = K / 2;
    constexpr int kWide = kTile + K - 1;  // a tile plus the radius on both sides
    constexpr int kTaps = (K * K * K + 3) / 4 * 4;
    extern __shared__ float tile[];
    float* const taps = tile + kWide * kWide * kWide;
    const int first_col = blockIdx.x * kTile, first_row = blockIdx.y * kTile,
              first_plane = blockIdx.z * kTile;
    for (int i = threadIdx.x; i < kWide * kWide * kWide; i += kThreads) {
        const int x = first_col - kRadius + i % kWide;
        const int y = first_row - kRadius + i / kWide % kWide;
        const int z = first_plane - kRadius + i / (kWide * kWide);
        const bool inside = z >= 0 && z < n && y >= 0 && y < n && x >= 0 && x < n;
        tile[i] = inside ? source[(static_cast<size_t>(z) * n + y) * n + x] : 0.0f;
    }
    for (int i = threadIdx.x; i < kTaps; i += kThreads) {
        taps[i] = i < K * K * K ? weights[i] : 0.0f;
    }
    // Tile, halo and weights are complete before any thread reads them.
    __syncthreads();

    // The column varies fastest with threadIdx.x: lanes read neighbouring words and
    // store whole sectors.
    const int tx = threadIdx.x % kTile, ty = threadIdx.x / kTile % kTile,
              tz = threadIdx.x / (kTile * kTile);
    float sum = 0.0f;
    for (int dz = 0; dz < K; ++dz) {
        for (int dy = 0; dy < K; ++dy) {
#pragma unroll
            for (int dx = 0; dx < K; ++dx) {
                sum += tile[((tz + dz) * kWide + ty + dy) * kWide + tx + dx] *
                       taps[(dz * K + dy) * K + dx];
            }
        }
    }
    const int col = first_col + tx, row = first_row + ty, plane = first_plane + tz;
    if (plane < n && row < n && col < n) {
        target[(static_cast<size_t>(plane) * n + row) * n + col] = sum;
    }
}
