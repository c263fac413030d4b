// Idea: lanes reconverge every kBatch steps, and take new points only then.
// From the rung before: all lanes leave the inner loop only at the end of a batch, so
// lanes that are done take their next points together.
// Requires: nothing.
#include "escape.cuh"

constexpr int kPoints = 8;
constexpr int kBatch = 16;
static_assert(
    kMaxSteps % kBatch == 0, "a point in the set is done at the end of a batch");

__global__ void escape_reconverged(
    const float* __restrict__ re, const float* __restrict__ im,
    int* __restrict__ counts, size_t n)
{
    size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x * kPoints + threadIdx.x;
    const size_t end =
        min(static_cast<size_t>(blockIdx.x + 1) * blockDim.x * kPoints, n);
    Point c = {0.0f, 0.0f};
    if (i < end) {
        c = {re[i], im[i]};
    }
    Point z = {0.0f, 0.0f};
    int count = 0;
    while (i < end) {
        bool left = false;
#pragma unroll
        for (int k = 0; k < kBatch && !left; ++k) {
            if (step(z, c)) {
                ++count;
            } else {
                left = true;
            }
        }
        if (left || count == kMaxSteps) {
            counts[i] = count;
            i += blockDim.x;
            if (i < end) {
                c = {re[i], im[i]};
            }
            z = {0.0f, 0.0f};
            count = 0;
        }
    }
}
