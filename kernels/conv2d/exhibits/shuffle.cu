// Exhibit. Source: FurtherAI's repository CUDA_Conv2d.
// Each lane loads one element of a row and passes it to the lane before it, once for
// each column of the filter. The last lanes of the warp have no lane after them: a
// shuffle returns their own value instead of the elements of the halo. The repository
// tests with an image of ones, which hides the difference.
constexpr int kKernel = 3;

extern "C" __global__ void convolve_row(
    const float* __restrict__ in, const float* __restrict__ filter,
    float* __restrict__ out, int rows, int cols)
{
    const int x = blockIdx.x * warpSize + threadIdx.x, y = blockIdx.y;
    float sum = 0.0f;
    for (int i = 0; i < kKernel; ++i) {
        const int r = y + i - kKernel / 2, c = x - kKernel / 2;
        float value =
            r >= 0 && r < rows && c >= 0 && c < cols ? in[r * cols + c] : 0.0f;
        for (int j = 0; j < kKernel; ++j) {
            sum += value * filter[i * kKernel + j];
            value = __shfl_down_sync(0xffffffffu, value, 1);
        }
    }
    if (y < rows && x < cols) {
        out[y * cols + x] = sum;
    }
}
