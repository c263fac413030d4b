// The variance of each group of 256 floats from sums of x and x * x. Right on paper:
// E[x^2] - E[x]^2. If the mean is large, this subtracts two nearly equal numbers.
__global__ void variance(const float* __restrict__ source, float* __restrict__ result)
{
    const int lane = threadIdx.x;
    float sum = 0.0f, squares = 0.0f;
    for (int i = lane; i < 256; i += 32) {
        const float x = source[blockIdx.x * 256 + i];
        sum += x;
        squares += x * x;
    }
    for (int apart = 16; apart > 0; apart /= 2) {
        sum += __shfl_xor_sync(0xffffffffu, sum, apart);
        squares += __shfl_xor_sync(0xffffffffu, squares, apart);
    }
    const float mean = sum / 256;
    if (lane == 0) result[blockIdx.x] = squares / 256 - mean * mean;
}
