// Threads past the end have nothing to add and return; the others add by shuffles.
__global__ void sum_early_return(
    const float* __restrict__ source, float* __restrict__ total, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) {
        return;
    }
    float value = source[i];
    for (int offset = 16; offset > 0; offset /= 2) {
        value += __shfl_down_sync(0xffffffffu, value, offset);
    }
    if (threadIdx.x % 32 == 0) {
        atomicAdd(total, value);
    }
}
