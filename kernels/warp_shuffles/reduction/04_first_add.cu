// Idea: a thread that would rest after the load adds two floats on the way in, so a block takes twice as many.
// From the rung before: each thread loads two floats and adds them before the tree starts; half as many blocks.
// Requires: a block of kThreads threads; one block per kChunk floats; launched again on its own sums until one is left.
constexpr int kThreads = 256;
constexpr int kChunk = 2 * kThreads;

__global__ void sum_first_add(const float* __restrict__ source, float* __restrict__ sums, size_t n)
{
    __shared__ float partial[kThreads];
    const int t = threadIdx.x;
    const size_t i = static_cast<size_t>(blockIdx.x) * kChunk + t;
    const float first = i < n ? source[i] : 0.0f;
    const float second = i + kThreads < n ? source[i + kThreads] : 0.0f;
    partial[t] = first + second;
    for (int stride = kThreads / 2; stride > 0; stride /= 2) {
        __syncthreads();  // the sums of the step before are written before this step reads them
        if (t < stride) {
            partial[t] += partial[t + stride];
        }
    }
    if (t == 0) {
        sums[blockIdx.x] = partial[0];
    }
}
