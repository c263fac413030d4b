// A table read in any order, from shared and from global memory.
template <typename T>
__global__ void gather(const int *index, const T *table, T *near, T *far) {
    __shared__ T held[200];
    const int t = blockIdx.x * blockDim.x + threadIdx.x;
    for (int i = threadIdx.x; i < 200; i += blockDim.x) held[i] = table[i];
    __syncthreads();
    const int k = index[t];
    near[t] = held[k];
    far[t] = table[k];
}
