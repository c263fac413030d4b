// Halves every float. A thread takes every stride-th element, and the loop is unrolled
// four times, but each load waits for the store before it. Let at least four loads of a
// thread be in flight before it needs the first value.
__global__ void in_flight(const float* source, float* target, int n)
{
    const int stride = gridDim.x * blockDim.x;
#pragma unroll 4
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
        target[i] = 0.5f * source[i];
    }
}
