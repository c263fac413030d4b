// Thread i writes the difference of elements i and i + 1. There is one difference
// fewer than there are elements. Correct the kernel.
__global__ void differences(
    const float* __restrict__ x, float* __restrict__ d, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        d[i] = x[i + 1] - x[i];
    }
}
