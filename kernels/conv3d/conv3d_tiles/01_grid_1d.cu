// Idea: a one-dimensional grid, in which a block finds its tile by division.
// From the rung before: this is the first rung: the tile of `tiled`, of any
// width.
// Requires: a block of kTile^3 threads; (kTile + K - 1)^3 + K^3 floats of shared
// memory, the latter rounded up to whole float4s; `across`^3 blocks, of which `across`
// cover an axis.
#include "tile.cuh"

template <int K, int kTile>
__global__ void __launch_bounds__(kTile* kTile* kTile)
    conv3d_grid_1d(const float* __restrict__ source, const float* __restrict__ weights,
                   float* __restrict__ target, int n, int across)
{
    const int tile_x = blockIdx.x % across, tile_y = blockIdx.x / across % across,
              tile_z = blockIdx.x / across / across;
    convolve_tile<K, kTile>(source, weights, target, n, tile_x, tile_y, tile_z);
}
