// Exhibit, wrong on purpose: a private copy in shared memory, with a plain ++ in place
// of the atomic.
__global__ void histogram_racing(
    const unsigned char* __restrict__ values, unsigned* __restrict__ counts, int n)
{
    __shared__ unsigned copy[256];
    for (int bin = threadIdx.x; bin < 256; bin += blockDim.x) copy[bin] = 0;
    __syncthreads();

    const int stride = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
        copy[values[i]]++;
    }
    __syncthreads();

    for (int bin = threadIdx.x; bin < 256; bin += blockDim.x) {
        atomicAdd(&counts[bin], copy[bin]);
    }
}
