// Idea: a block sums one chunk of the array; each thread loads one float at a time.
// From the rung before: the first rung.
// Requires: a block of kThreads threads; one block per chunk of kChunk floats.
constexpr int kThreads = 256;
constexpr int kChunk = 8192;

__global__ void read_scalar(
    const float* __restrict__ source, float* __restrict__ sums, size_t n)
{
    __shared__ float partial[kThreads];
    const size_t start = static_cast<size_t>(blockIdx.x) * kChunk;
    float sum = 0.0f;
    for (int k = threadIdx.x; k < kChunk; k += kThreads) {
        if (start + k < n) {
            sum += source[start + k];
        }
    }
    partial[threadIdx.x] = sum;
    for (int half = kThreads / 2; half > 0; half /= 2) {
        __syncthreads();  // the last step's sums are written before this one reads
        if (threadIdx.x < half) {
            partial[threadIdx.x] += partial[threadIdx.x + half];
        }
    }
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = partial[0];
    }
}
