// Every output is the sum of kTaps floats of its column, from its own row down. A
// thread computes kOut outputs of a column.
constexpr int kTaps = 7;
constexpr int kOut = 8;

__global__ void window(
    const float* __restrict__ source, float* __restrict__ target, int rows, int cols)
{
    const int col = blockIdx.x * blockDim.x + threadIdx.x;
    const int first = (blockIdx.y * blockDim.y + threadIdx.y) * kOut;
    if (col >= cols) {
        return;
    }
    float sum[kOut] = {};
#pragma unroll
    for (int y = 0; y < kOut + kTaps - 1; ++y) {
        const int row = first + y;
        const float value = row < rows ? source[row * cols + col] : 0.0f;
#pragma unroll
        for (int o = 0; o < kOut; ++o) {
            if (y >= o && y < o + kTaps) {
                sum[o] += value;
            }
        }
    }
#pragma unroll
    for (int o = 0; o < kOut; ++o) {
        if (first + o < rows) {
            target[(first + o) * cols + col] = sum[o];
        }
    }
}
