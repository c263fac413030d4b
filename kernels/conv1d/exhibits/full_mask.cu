// Exhibit. Source: the worklog on a 1D convolution for a U-Net.
// The sum over a warp names all 32 lanes in its mask and reads from lanes 16, 8, ...
// away. The configuration with many channels per thread has blocks of two threads: the
// other lanes do not exist, and the values read from them are undefined.
extern "C" __global__ void channel_sum(const float* __restrict__ products,
                                       float* __restrict__ output)
{
    float sum = products[blockIdx.x * blockDim.x + threadIdx.x];
    for (int offset = warpSize / 2; offset > 0; offset /= 2) {
        sum += __shfl_down_sync(0xffffffffu, sum, offset);
    }
    if (threadIdx.x == 0) {
        output[blockIdx.x] = sum;
    }
}
