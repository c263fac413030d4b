// Shared by the rungs that add to the outputs by atomics.
#pragma once

// Sets each output to its bias, in a separate launch before the kernel that adds.
__global__ void conv1d_bias(const float* __restrict__ bias, float* __restrict__ output,
                            int outputs, int length)
{
    const size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < static_cast<size_t>(outputs) * length) {
        output[i] = bias[i / length];
    }
}

// Adds the warp's sums, one for each position of a tile from `first` on, to the outputs
// of channel `out`. warpSize is not a compile-time constant, so the loop of shuffles is
// not unrolled and takes fewer registers than warp_sum.
template <int kTile>
__device__ __forceinline__ void add_to_outputs(float* __restrict__ output,
                                               float (&sum)[kTile], int out, int first,
                                               int length)
{
    constexpr unsigned kLanes = 0xffffffffu;
#pragma unroll
    for (int p = 0; p < kTile; ++p) {
        for (int offset = warpSize / 2; offset > 0; offset /= 2) {
            sum[p] += __shfl_down_sync(kLanes, sum[p], offset);
        }
        if (threadIdx.x % warpSize == 0 && first + p < length) {
            atomicAdd(&output[static_cast<size_t>(out) * length + first + p], sum[p]);
        }
    }
}
