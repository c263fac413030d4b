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
#pragma unroll 1
    // TODO: read each float of the column once, and add it to every sum that needs it.
    for (int o = 0; o < kOut; ++o) {
        float sum = 0.0f;
        for (int t = 0; t < kTaps; ++t) {
            const int row = first + o + t;
            sum += row < rows ? source[row * cols + col] : 0.0f;
        }
        if (first + o < rows) {
            target[(first + o) * cols + col] = sum;
        }
    }
}
