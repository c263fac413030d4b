// What starts a chain that goes on in one launch: the first step, a counter of zero.
#pragma once
#include "../../common/hopper/dependent.cuh"

__global__ void chain_start(int* __restrict__ counts, unsigned* __restrict__ arrived)
{
    start_next_launch();
    if (threadIdx.x == 0) {
        counts[blockIdx.x] = 1;
        if (blockIdx.x == 0) *arrived = 0;
    }
}
