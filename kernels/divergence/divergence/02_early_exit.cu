// Idea: a lane leaves the loop when its point is done, a warp when all its lanes are.
// From the rung before: the data end the loop, not kMaxSteps.
// Requires: nothing.
#include "escape.cuh"

__global__ void escape_early_exit(
    const float* __restrict__ re, const float* __restrict__ im,
    int* __restrict__ counts, size_t n)
{
    const size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= n) {
        return;
    }
    const Point c = {re[i], im[i]};
    Point z = {0.0f, 0.0f};
    int count = 0;
    while (count < kMaxSteps && step(z, c)) {
        ++count;
    }
    counts[i] = count;
}
