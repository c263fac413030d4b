// Idea: a tree in shared memory; in each step, half of the threads drop out.
// From the rung before: the first rung.
// Requires: a block of kThreads threads; one block per kThreads floats; repeated
// launches on its own sums until one is left.
constexpr int kThreads = 256;

__global__ void sum_interleaved(
    const float* __restrict__ source, float* __restrict__ sums, size_t n)
{
    __shared__ float partial[kThreads];
    const int t = threadIdx.x;
    const size_t i = static_cast<size_t>(blockIdx.x) * kThreads + t;
    partial[t] = i < n ? source[i] : 0.0f;
    for (int stride = 1; stride < kThreads; stride *= 2) {
        __syncthreads();  // the last step's sums are written before this one reads
        if (t % (2 * stride) == 0) {
            partial[t] += partial[t + stride];
        }
    }
    if (t == 0) {
        sums[blockIdx.x] = partial[0];
    }
}
