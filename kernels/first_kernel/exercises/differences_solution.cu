// Differences of neighbours: the guard protects the element with the largest index.
__global__ void differences(
    const float* __restrict__ x, float* __restrict__ d, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i + 1 < n) {
        d[i] = x[i + 1] - x[i];
    }
}
