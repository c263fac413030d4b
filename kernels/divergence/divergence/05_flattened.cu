// Idea: one loop instead of two: a lane that is done takes its next point.
// From the rung before: a lane should no longer wait for others between its points.
// Requires: nothing.
#include "escape.cuh"

constexpr int kPoints = 8;

__global__ void escape_flattened(
    const float* __restrict__ re, const float* __restrict__ im,
    int* __restrict__ counts, size_t n)
{
    size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x * kPoints + threadIdx.x;
    const size_t end =
        min(static_cast<size_t>(blockIdx.x + 1) * blockDim.x * kPoints, n);
    if (i >= end) {
        return;
    }
    Point c = {re[i], im[i]};
    Point z = {0.0f, 0.0f};
    int count = 0;
    while (true) {
        if (count < kMaxSteps && step(z, c)) {
            ++count;
            continue;
        }
        counts[i] = count;
        i += blockDim.x;
        if (i >= end) {
            return;
        }
        c = {re[i], im[i]};
        z = {0.0f, 0.0f};
        count = 0;
    }
}
