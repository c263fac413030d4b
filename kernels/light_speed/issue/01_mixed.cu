// Idea: three additions per logic instruction saturate the schedulers, but no pipe.
// From the rung before: the first rung.
// Requires: a block of kThreads threads.
constexpr int kSteps = 2048;
constexpr int kUnroll = 32;
constexpr int kChains = 4;  // independent chains in each thread
constexpr int kThreads = 256;
constexpr float kAdded = 1.0f;  // an immediate: the instruction reads one register
static_assert(
    kSteps % kUnroll == 0, "the unrolled body must divide the number of steps");

__global__ void issue_mixed(
    const int* __restrict__ source, unsigned* __restrict__ target, size_t n)
{
    const size_t i = static_cast<size_t>(blockIdx.x) * kThreads + threadIdx.x;
    if (i >= n) {
        return;
    }
    float x[kChains];
    unsigned bits[kChains] = {};
#pragma unroll
    for (int c = 0; c < kChains; ++c) {
        x[c] = static_cast<float>(source[i] + c);
    }
#pragma unroll 1
    for (int step = 0; step < kSteps; step += kUnroll) {
#pragma unroll
        for (int u = 0; u < kUnroll; ++u) {
#pragma unroll
            for (int c = 0; c < kChains; ++c) {
                x[c] = ((x[c] + kAdded) + kAdded) + kAdded;
                bits[c] ^= __float_as_uint(x[c]);
            }
        }
    }
    target[i] = bits[0] ^ bits[1] ^ bits[2] ^ bits[3];
}
