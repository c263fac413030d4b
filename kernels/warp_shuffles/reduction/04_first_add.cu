// Idea: each thread adds two floats as it loads them, so a block takes twice as many.
// From the rung before: the first addition happens during the load, before the tree;
// half as many blocks.
// Requires: a block of kThreads threads; one block per kChunk floats; repeated launches
// on its own sums until one is left.
constexpr int kThreads = 256;
constexpr int kChunk = 2 * kThreads;

__global__ void sum_first_add(
    const float* __restrict__ source, float* __restrict__ sums, size_t n)
{
    __shared__ float partial[kThreads];
    const int t = threadIdx.x;
    const size_t i = static_cast<size_t>(blockIdx.x) * kChunk + t;
    const float first = i < n ? source[i] : 0.0f;
    const float second = i + kThreads < n ? source[i + kThreads] : 0.0f;
    partial[t] = first + second;
    for (int stride = kThreads / 2; stride > 0; stride /= 2) {
        __syncthreads();  // the last step's sums are written before this one reads
        if (t < stride) {
            partial[t] += partial[t + stride];
        }
    }
    if (t == 0) {
        sums[blockIdx.x] = partial[0];
    }
}
