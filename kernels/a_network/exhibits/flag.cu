// Exhibit: a flag set after the data, without a fence. The reader may see the flag but
// not yet the data. Mistaking the flag for a barrier is the most common bug in
// persistent kernels.
__global__ void hand_on(float* data, int* flag, float* result)
{
    if (blockIdx.x == 0) {
        data[threadIdx.x] = 2.0f * threadIdx.x;
        __syncthreads();
        if (threadIdx.x == 0) atomicExch(flag, 1);
    } else {
        if (threadIdx.x == 0) {
            while (atomicAdd(flag, 0) == 0) {
            }
        }
        __syncthreads();
        result[threadIdx.x] = data[threadIdx.x];
    }
}
