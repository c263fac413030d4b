// Idea: a multiply-add that reads two registers, not three: the instruction holds kA.
// From the rung before: the multiplier is a compile-time constant and no longer an
// argument; the chain is the same.
// Requires: a multiplier equal to kA.
constexpr int kSteps = 8192;
constexpr int kUnroll = 256;
constexpr float kA = 0.9998f;
static_assert(
    kSteps % kUnroll == 0, "the unrolled body must divide the number of steps");

__global__ void fma_immediate(
    const float* __restrict__ source, float* __restrict__ target, size_t n, float b)
{
    const size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) {
        float x = source[i];
#pragma unroll 1
        for (int step = 0; step < kSteps; step += kUnroll) {
#pragma unroll
            for (int u = 0; u < kUnroll; ++u) {
                x = fmaf(kA, x, b);
            }
        }
        target[i] = x;
    }
}
