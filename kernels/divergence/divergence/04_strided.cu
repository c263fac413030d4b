// Idea: neighbouring lanes take neighbouring points; a thread's are a block apart.
// From the rung before: the same points per block, assigned the other way.
// Requires: nothing.
#include "escape.cuh"

constexpr int kPoints = 8;

__global__ void escape_strided(
    const float* __restrict__ re, const float* __restrict__ im,
    int* __restrict__ counts, size_t n)
{
    const size_t first =
        static_cast<size_t>(blockIdx.x) * blockDim.x * kPoints + threadIdx.x;
    for (int p = 0; p < kPoints; ++p) {
        const size_t i = first + static_cast<size_t>(p) * blockDim.x;
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
