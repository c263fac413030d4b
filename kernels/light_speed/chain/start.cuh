// Prepares a chain that runs in one launch: takes the first step, zeroes the counter.
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
