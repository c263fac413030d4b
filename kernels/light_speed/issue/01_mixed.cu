// Idea: two multiply-adds and a logic instruction: no pipe is full, but schedulers are.
// From the rung before: the first rung.
// Requires: a block of kThreads threads; a = 1, so that every step is exact.
constexpr int kSteps = 2048;
constexpr int kUnroll = 32;
constexpr int kPairs = 4;  // independent pairs of chains
constexpr int kThreads = 256;
static_assert(
    kSteps % kUnroll == 0, "the unrolled body must divide the number of steps");

__global__ void issue_mixed(
    const int* __restrict__ source, unsigned* __restrict__ target, size_t n, float a,
    float b)
{
    const size_t i = static_cast<size_t>(blockIdx.x) * kThreads + threadIdx.x;
    if (i >= n) {
        return;
    }
    float x[kPairs], y[kPairs];
    unsigned bits[kPairs] = {};
#pragma unroll
    for (int p = 0; p < kPairs; ++p) {
        x[p] = static_cast<float>(source[i] + p);
        y[p] = static_cast<float>(source[i] - p);
    }
#pragma unroll 1
    for (int step = 0; step < kSteps; step += kUnroll) {
#pragma unroll
        for (int u = 0; u < kUnroll; ++u) {
#pragma unroll
            for (int p = 0; p < kPairs; ++p) {
                x[p] = fmaf(a, x[p], b);
                y[p] = fmaf(a, y[p], -b);
                bits[p] ^= __float_as_uint(x[p]) ^ __float_as_uint(y[p]);
            }
        }
    }
    target[i] = bits[0] ^ bits[1] ^ bits[2] ^ bits[3];
}
