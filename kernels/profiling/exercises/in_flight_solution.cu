// The pointers promise not to overlap, so a load may go ahead of an earlier store.
__global__ void in_flight(
    const float* __restrict__ source, float* __restrict__ target, int n)
{
    const int stride = gridDim.x * blockDim.x;
#pragma unroll 4
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
        target[i] = 0.5f * source[i];
    }
}
