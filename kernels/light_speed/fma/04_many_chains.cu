// Idea: several independent chains per thread: while one waits, another issues.
// From the rung before: the multiplier is an argument again; kChains values per thread,
// and kChains times fewer threads.
// Requires: a block of kThreads threads.
constexpr int kSteps = 8192;
constexpr int kUnroll = 32;
constexpr int kChains = 8;
constexpr int kThreads = 256;
static_assert(
    kSteps % kUnroll == 0, "the unrolled body must divide the number of steps");

__global__ void fma_many_chains(
    const float* __restrict__ source, float* __restrict__ target, size_t n, float a,
    float b)
{
    const size_t first =
        static_cast<size_t>(blockIdx.x) * kThreads * kChains + threadIdx.x;
    float x[kChains];
#pragma unroll
    for (int c = 0; c < kChains; ++c) {
        const size_t i = first + c * kThreads;
        x[c] = i < n ? source[i] : 0.0f;
    }
#pragma unroll 1
    for (int step = 0; step < kSteps; step += kUnroll) {
#pragma unroll
        for (int u = 0; u < kUnroll; ++u) {
#pragma unroll
            for (int c = 0; c < kChains; ++c) {
                x[c] = fmaf(a, x[c], b);
            }
        }
    }
#pragma unroll
    for (int c = 0; c < kChains; ++c) {
        const size_t i = first + c * kThreads;
        if (i < n) {
            target[i] = x[c];
        }
    }
}
