// Idea: each thread takes kPoints consecutive points, one after another.
// From the rung before: a loop over points around the loop over steps; neighbouring
// lanes are kPoints points apart.
// Requires: nothing.
#include "escape.cuh"

constexpr int kPoints = 8;

__global__ void escape_blocked(
    const float* __restrict__ re, const float* __restrict__ im,
    int* __restrict__ counts, size_t n)
{
    const size_t first =
        (static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x) * kPoints;
    for (int p = 0; p < kPoints; ++p) {
        const size_t i = first + p;
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
}
