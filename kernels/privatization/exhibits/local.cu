// Exhibit, useless on purpose: the copies that some teaching code calls privatization.
__global__ void sum_direct(const float* a, const float* b, float* out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = a[i] + b[i];
    }
}

__global__ void sum_private(const float* a, const float* b, float* out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        const float private_a = a[i];  // a private copy of each input
        const float private_b = b[i];
        out[i] = private_a + private_b;
    }
}
