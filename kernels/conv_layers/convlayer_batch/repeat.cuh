// Repeats the weights for rungs whose kernel splits the input maps into parts but has
// no batch: the maps of all images are one long list, each part is an image, and each
// part needs the same weights.
#pragma once

// repeated[out][image][map and tap] = weights[out][map and tap]; `row` is the number of
// weights per output map.
template <int kThreads>
__global__ void __launch_bounds__(kThreads)
    convlayer_repeat(const float* __restrict__ weights, float* __restrict__ repeated,
                     int row, size_t count)
{
    const size_t at = static_cast<size_t>(blockIdx.x) * kThreads + threadIdx.x;
    if (at >= count) return;
    const size_t images = gridDim.y, out = at / row, rest = at % row;
    repeated[(out * images + blockIdx.y) * row + rest] = weights[at];
}
