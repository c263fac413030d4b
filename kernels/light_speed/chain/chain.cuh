// A step of the chain as a launch: each block adds one to its neighbour's count after
// the previous launch. kEarly: a launch may start while the previous one runs (pdl).
#pragma once
#include "../../common/hopper/dependent.cuh"

__global__ void chain_step(const int* __restrict__ from, int* __restrict__ to, int step)
{
    if constexpr (kEarly) {
        start_next_launch();
        wait_for_launch_before();
    }
    if (threadIdx.x == 0) {
        to[blockIdx.x] = step == 0 ? 1 : from[(blockIdx.x + 1) % gridDim.x] + 1;
    }
}
