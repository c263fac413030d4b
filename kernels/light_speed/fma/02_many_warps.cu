// Idea: the same chain in many warps: while one waits, the scheduler issues another.
// From the rung before: one thread per value, so the launch fills every SM with warps;
// the code of a chain is unchanged.
// Requires: nothing.
constexpr int kSteps = 8192;
constexpr int kUnroll = 256;
static_assert(
    kSteps % kUnroll == 0, "the unrolled body must divide the number of steps");

__global__ void fma_many_warps(
    const float* __restrict__ source, float* __restrict__ target, size_t n, float a,
    float b)
{
    const size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) {
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
