// Idea: a three-dimensional grid, in which the hardware numbers the tiles.
// From the rung before: no division; nothing else changes.
// Requires: a block of kTile^3 threads; (kTile + K - 1)^3 + K^3 floats of shared
// memory, the latter rounded up to whole float4s; a grid of three equal sides.
#include "tile.cuh"

template <int K, int kTile>
__global__ void __launch_bounds__(kTile* kTile* kTile)
    conv3d_grid_3d(const float* __restrict__ source, const float* __restrict__ weights,
                   float* __restrict__ target, int n)
{
    convolve_tile<K, kTile>(source, weights, target, n, blockIdx.x, blockIdx.y,
                            blockIdx.z);
}
