__global__ void increment(const float* source, float* target, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        target[i] = source[i] + 1.0f;
    }
}

__global__ void increment_strided(const float* source, float* target, int n, int stride)
{
    const int i = (blockIdx.x * blockDim.x + threadIdx.x) * stride;
    if (i < n) {
        target[i] = source[i] + 1.0f;
    }
}
