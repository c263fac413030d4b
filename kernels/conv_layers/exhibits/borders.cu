// A convolution layer with 3 x 3 weights as a matrix product: row k of the unfolded
// image is one tap of one input map, column p is one pixel. Each thread computes one
// output.
__global__ void layer(const float* __restrict__ input,
                      const float* __restrict__ weights, float* __restrict__ output,
                      int n, int c_in, int c_out)
{
    const int pixel = blockIdx.x * blockDim.x + threadIdx.x, out = blockIdx.y;
    const int plane = n * n;
    if (pixel >= plane) return;
    float sum = 0.0f;
    for (int k = 0; k < c_in * 9; ++k) {
        const int map = k / 9, down = k % 9 / 3 - 1, right = k % 3 - 1;
        const int at = pixel + down * n + right;
        const float value = at >= 0 && at < plane ? input[map * plane + at] : 0.0f;
        sum += weights[out * c_in * 9 + k] * value;
    }
    output[out * plane + pixel] = sum;
}
