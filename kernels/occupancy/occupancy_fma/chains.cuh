// Takes kChains values per thread through kSteps dependent multiply-adds each. The
// chains do not depend on each other.
constexpr int kGroup = 32;  // the distance between the values of one thread
constexpr int kSteps = 4096;
// A constant, so that it is an immediate operand, not a register.
constexpr float kA = 0.9998f;

template <int kChains>
__device__ void multiply_add_chains(
    const float* __restrict__ source, float* __restrict__ target, size_t n, float b)
{
    // About 256 multiply-adds per iteration: enough to hide the cost of the loop, and
    // few enough for the instruction cache.
    constexpr int kUnroll = kChains < 32 ? 256 / kChains : 4;
    static_assert(
        kSteps % kUnroll == 0, "the unrolled body must divide the number of steps");
    const size_t thread = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    const size_t first = thread / kGroup * kGroup * kChains + thread % kGroup;
    float x[kChains];
#pragma unroll
    for (int c = 0; c < kChains; ++c) {
        x[c] = first + c * kGroup < n ? source[first + c * kGroup] : 0.0f;
    }
#pragma unroll 1
    for (int step = 0; step < kSteps; step += kUnroll) {
#pragma unroll
        for (int u = 0; u < kUnroll; ++u) {
#pragma unroll
            for (int c = 0; c < kChains; ++c) {
                x[c] = fmaf(kA, x[c], b);
            }
        }
    }
#pragma unroll
    for (int c = 0; c < kChains; ++c) {
        if (first + c * kGroup < n) {
            target[first + c * kGroup] = x[c];
        }
    }
}
