// Idea: load the first planes while another launch still transforms the weights.
// From the rung before: programmatic dependent launch; a block waits for the weights'
// spectra only after it has started the copies of its first boxes.
// Requires: compute capability 9.0; rows of a multiple of 16 bytes.
#include "boxes.cuh"

template <int K>
__global__ void fft_conv3d_spectra_first(const float* __restrict__ weights,
                                         float2* __restrict__ spectra)
{
    start_next_launch();
    transform_weights<K>(weights, spectra);
}

template <int K>
__global__ void __launch_bounds__(kThreads, 2)
    fft_conv3d_dependent(const __grid_constant__ TensorMap map,
                         const float* __restrict__ source,
                         const float* __restrict__ weights, const float2* spectra,
                         float* __restrict__ target, int n, int planes)
{
    walk_boxes<K, true>(map, source, weights, spectra, target, n, planes);
}
