// Exhibit. Source: the worklog on a 1D convolution for a U-Net.
// Each warp adds its part of an output, and one thread adds the bias, by atomics.
// Nothing sets the output to zero first: the result is correct only where the memory
// happens to hold zeros.
extern "C" __global__ void add_parts(const float* __restrict__ parts,
                                     const float* __restrict__ bias,
                                     float* __restrict__ output)
{
    if (threadIdx.x == 0) {
        atomicAdd(&output[blockIdx.x], bias[blockIdx.x]);
    }
    if (threadIdx.x % warpSize == 0) {
        const int warps = blockDim.x / warpSize;
        atomicAdd(&output[blockIdx.x],
                  parts[blockIdx.x * warps + threadIdx.x / warpSize]);
    }
}
