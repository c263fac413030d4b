// Idea: every lane takes all kMaxSteps steps; a flag tells which of them count.
// From the rung before: the first rung.
// Requires: nothing.
#include "escape.cuh"

__global__ void escape_fixed(
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
    bool inside = true;
    for (int k = 0; k < kMaxSteps; ++k) {
        inside = step(z, c) && inside;
        if (inside) {
            ++count;
        }
    }
    counts[i] = count;
}
