// One launch: the first thread of the grid sets the total to zero, and every block adds
// its sum.
#ifndef BLOCK
#define BLOCK blockIdx.x
#endif

__global__ void sum_zeroed(const float* __restrict__ source, float* __restrict__ total)
{
    const int i = BLOCK * blockDim.x + threadIdx.x;
    if (i == 0) {
        *total = 0.0f;
    }
    float value = source[i];
    for (int offset = 16; offset > 0; offset /= 2) {
        value += __shfl_down_sync(0xffffffffu, value, offset);
    }
    if (threadIdx.x % 32 == 0) {
        atomicAdd(total, value);
    }
}
