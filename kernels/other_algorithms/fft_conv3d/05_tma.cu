// Idea: let the copy engine (TMA) load the next planes while the thread block computes.
// From the rung before: tensor maps: warps compute no addresses and check no bounds;
// the engine supplies the zeros outside the volume.
// Requires: compute capability 9.0; rows of a multiple of 16 bytes.
#include "boxes.cuh"

template <int K>
__global__ void __launch_bounds__(kThreads, 2)
    fft_conv3d_tma(const __grid_constant__ TensorMap map,
                   const float* __restrict__ source, const float* __restrict__ weights,
                   const float2* __restrict__ spectra, float* __restrict__ target,
                   int n, int planes)
{
    walk_boxes<K, false>(map, source, weights, spectra, target, n, planes);
}
