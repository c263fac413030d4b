// Idea: add the upper half to the lower half: neighbouring lanes use different banks.
// From the rung before: the stride starts at half the block and shrinks; thread t
// always keeps the sum at t.
// Requires: a block of kThreads threads; one block per kThreads floats; repeated
// launches on its own sums until one is left.
constexpr int kThreads = 256;

__global__ void sum_sequential(
    const float* __restrict__ source, float* __restrict__ sums, size_t n)
{
    __shared__ float partial[kThreads];
    const int t = threadIdx.x;
    const size_t i = static_cast<size_t>(blockIdx.x) * kThreads + t;
    partial[t] = i < n ? source[i] : 0.0f;
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
