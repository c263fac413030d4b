// Elements of two kinds alternate. Both kinds cost the same, but every warp runs both.
// Let each thread choose its element so that all lanes of a warp have elements of one
// kind. The block still handles the same kThreads elements.
constexpr int kThreads = 256;
constexpr int kWork = 64;

__global__ void alternating(
    const float* __restrict__ source, float* __restrict__ target, int n)
{
    const int within = threadIdx.x;  // TODO: which of the block's elements?
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
