// The three trees with a block size unknown at compile time, so that the loops are not
// unrolled.
extern __shared__ float partial[];

__device__ void load(const float* __restrict__ source, size_t n)
{
    const size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    partial[threadIdx.x] = i < n ? source[i] : 0.0f;
}

__device__ void store(float* __restrict__ sums)
{
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = partial[0];
    }
}

__global__ void runtime_interleaved(
    const float* __restrict__ source, float* __restrict__ sums, size_t n)
{
    const int t = threadIdx.x;
    load(source, n);
    for (int stride = 1; stride < blockDim.x; stride *= 2) {
        __syncthreads();  // the last step's sums are written before this one reads
        if (t % (2 * stride) == 0) {
            partial[t] += partial[t + stride];
        }
    }
    store(sums);
}

__global__ void runtime_non_divergent(
    const float* __restrict__ source, float* __restrict__ sums, size_t n)
{
    const int t = threadIdx.x;
    load(source, n);
    for (int stride = 1; stride < blockDim.x; stride *= 2) {
        __syncthreads();  // the last step's sums are written before this one reads
        const int left = 2 * stride * t;
        if (left < blockDim.x) {
            partial[left] += partial[left + stride];
        }
    }
    store(sums);
}

__global__ void runtime_sequential(
    const float* __restrict__ source, float* __restrict__ sums, size_t n)
{
    const int t = threadIdx.x;
    load(source, n);
    for (int stride = blockDim.x / 2; stride > 0; stride /= 2) {
        __syncthreads();  // the last step's sums are written before this one reads
        if (t < stride) {
            partial[t] += partial[t + stride];
        }
    }
    store(sums);
}
