// A smoothing filter: each output is the mean of five inputs, the element itself and
// two on either side.
constexpr int kThreads = 128;
constexpr int kRadius = 2;

__global__ void smooth(
    const float* __restrict__ source, float* __restrict__ target, int n)
{
    __shared__ float tile[kThreads];
    const int i = blockIdx.x * kThreads + threadIdx.x;
    tile[threadIdx.x] = i < n ? source[i] : 0.0f;
    __syncthreads();  // the tile is loaded before any thread reads it

    float sum = 0.0f;
    for (int offset = -kRadius; offset <= kRadius; ++offset) {
        const int at = static_cast<int>(threadIdx.x) + offset;
        if (at >= 0 && at < kThreads) {
            sum += tile[at];
        }
    }
    if (i < n) {
        target[i] = sum / (2 * kRadius + 1);
    }
}
