// The variance of each group of 256 floats: the values stay in registers, so the mean
// is known before the differences from it are squared.
__global__ void variance(const float* __restrict__ source, float* __restrict__ result)
{
    const int lane = threadIdx.x;
    float x[8], sum = 0.0f, squares = 0.0f;
    for (int i = 0; i < 8; ++i) {
        x[i] = source[blockIdx.x * 256 + i * 32 + lane];
        sum += x[i];
    }
    for (int apart = 16; apart > 0; apart /= 2) {
        sum += __shfl_xor_sync(0xffffffffu, sum, apart);
    }
    const float mean = sum / 256;
    for (int i = 0; i < 8; ++i) {
        squares += (x[i] - mean) * (x[i] - mean);
    }
    for (int apart = 16; apart > 0; apart /= 2) {
        squares += __shfl_xor_sync(0xffffffffu, squares, apart);
    }
    if (lane == 0) result[blockIdx.x] = squares / 256;
}
