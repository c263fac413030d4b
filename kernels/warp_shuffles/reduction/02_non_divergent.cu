// Idea: the same tree, but the first threads add, so whole warps are active or idle.
// From the rung before: thread t adds the pair at 2 * stride * t instead of testing
// whether t is a multiple of 2 * stride.
// Requires: a block of kThreads threads; one block per kThreads floats; repeated
// launches on its own sums until one is left.
constexpr int kThreads = 256;

__global__ void sum_non_divergent(
    const float* __restrict__ source, float* __restrict__ sums, size_t n)
{
    __shared__ float partial[kThreads];
    const int t = threadIdx.x;
    const size_t i = static_cast<size_t>(blockIdx.x) * kThreads + t;
    partial[t] = i < n ? source[i] : 0.0f;
    for (int stride = 1; stride < kThreads; stride *= 2) {
        __syncthreads();  // the last step's sums are written before this one reads
        const int left = 2 * stride * t;
        if (left < kThreads) {
            partial[left] += partial[left + stride];
        }
    }
    if (t == 0) {
        sums[blockIdx.x] = partial[0];
    }
}
