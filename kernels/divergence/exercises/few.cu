// Only the few positive elements need work. Correct, but each of their lanes keeps up
// to 31 others waiting. Let the block first list its busy elements in shared memory,
// and then assign them to its first threads, without gaps.
constexpr int kThreads = 256;
constexpr int kWork = 200;

__device__ float work(float v)
{
    for (int k = 0; k < kWork; ++k) {
        v = 0.5f * v + 1.0f;
    }
    return v;
}

__global__ void few(const float* __restrict__ source, float* __restrict__ target, int n)
{
    const int i = blockIdx.x * kThreads + threadIdx.x;
    if (i < n) {
        const float v = source[i];
        target[i] = v > 0.0f ? work(v) : 0.0f;
    }
}
