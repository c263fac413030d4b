// The tile of the rung `tiled` of the ladder conv3d, of any width: kTile^3 outputs per
// block, one per thread, and a halo of K / 2 floats around them in shared memory.
#pragma once

template <int K, int kTile>
__device__ void convolve_tile(const float* __restrict__ source,
                              const float* __restrict__ weights,
                              float* __restrict__ target, int n, int tile_x, int tile_y,
                              int tile_z)
{
    constexpr int kThreads = kTile * kTile * kTile, kRadius = K / 2;
    constexpr int kWide = kTile + K - 1;  // a tile plus the radius on both sides
    constexpr int kTaps = (K * K * K + 3) / 4 * 4;
    extern __shared__ float tile[];
    float* const taps = tile + kWide * kWide * kWide;
    const int first_col = tile_x * kTile, first_row = tile_y * kTile,
              first_plane = tile_z * kTile;
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
