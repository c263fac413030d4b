// z = x + y: a block of kThreads threads adds kThreads * kOut elements, kOut per
// thread.
constexpr int kThreads = 128;
constexpr int kOut = 4;

__global__ void spread(
    const float* __restrict__ x, const float* __restrict__ y, float* __restrict__ z,
    int n)
{
    const int first = blockIdx.x * kThreads * kOut;
    for (int o = 0; o < kOut; ++o) {
        const int i = first + threadIdx.x * kOut + o;  // TODO
        if (i < n) {
            z[i] = x[i] + y[i];
        }
    }
}
