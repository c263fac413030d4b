// The first half of the threads takes the even elements, the second half the odd ones.
// 128 is a multiple of 32, so no warp has both.
constexpr int kThreads = 256;
constexpr int kWork = 64;

__global__ void alternating(
    const float* __restrict__ source, float* __restrict__ target, int n)
{
    constexpr int kHalf = kThreads / 2;
    const int within = 2 * (threadIdx.x % kHalf) + threadIdx.x / kHalf;
    const int i = blockIdx.x * kThreads + within;
    if (i >= n) {
        return;
    }
    float v = source[i];
    if (i % 2 == 0) {
        for (int k = 0; k < kWork; ++k) {
            v = 0.5f * v + 1.0f;
        }
    } else {
        for (int k = 0; k < kWork; ++k) {
            v = 0.5f * v - 1.0f;
        }
    }
    target[i] = v;
}
