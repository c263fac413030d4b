// Idea: every multiply-add waits for the previous one, and so does its warp.
// From the rung before: the first rung; one warp per scheduler, so there is nothing
// else to issue.
// Requires: nothing; any grid.
constexpr int kSteps = 8192;
constexpr int kUnroll = 256;
static_assert(
    kSteps % kUnroll == 0, "the unrolled body must divide the number of steps");

__global__ void fma_one_chain(
    const float* __restrict__ source, float* __restrict__ target, size_t n, float a,
    float b)
{
    const size_t threads = static_cast<size_t>(gridDim.x) * blockDim.x;
    for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n;
         i += threads) {
        float x = source[i];
#pragma unroll 1
        for (int step = 0; step < kSteps; step += kUnroll) {
#pragma unroll
            for (int u = 0; u < kUnroll; ++u) {
                x = fmaf(a, x, b);
            }
        }
        target[i] = x;
    }
}
