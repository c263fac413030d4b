// The first launch of the rungs that make halves of weights before: fused, whole_steps,
// early_release and overlapped.
#pragma once

#include "../../common/hopper/dependent.cuh"
#include "taps.cuh"

template <int kParts, int kBlock, int kWidth>
__global__ void __launch_bounds__(kBlock)
    convlayer_to_taps(const float* __restrict__ weights,
                      Taps<kParts>* __restrict__ taps, int c_in, int c_out)
{
    start_next_launch();
    make_taps<kParts, kBlock, kWidth>(weights, taps, c_in, c_out, blockIdx.x);
}
