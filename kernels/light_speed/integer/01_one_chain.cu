// Idea: integer multiply-adds, each of which waits for the previous one; many warps.
// From the rung before: the first rung.
// Requires: nothing.
constexpr int kSteps = 4096;
constexpr int kUnroll = 128;
static_assert(
    kSteps % kUnroll == 0, "the unrolled body must divide the number of steps");

__global__ void integer_one_chain(
    const unsigned* __restrict__ source, unsigned* __restrict__ target, size_t n,
    unsigned a, unsigned b)
{
    const size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) {
        unsigned x = source[i];
#pragma unroll 1
        for (int step = 0; step < kSteps; step += kUnroll) {
#pragma unroll
            for (int u = 0; u < kUnroll; ++u) {
                x = a * x + b;
            }
        }
        target[i] = x;
    }
}
