// A filter over one row, which loads the weights four at a time if their number allows.
__global__ void window(
    const float* source, const float* weights, float* target, int n, int width)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) {
        return;
    }
    const int radius = width / 2;
    float sum = 0.0f;
    if (width % 4 == 0) {
        for (int k = 0; k < width; k += 4) {
            const float4 w = *reinterpret_cast<const float4*>(weights + k);
            const float part[4] = {w.x, w.y, w.z, w.w};
            for (int j = 0; j < 4; ++j) {
                const int at = i + k + j - radius;
                if (at >= 0 && at < n) {
                    sum += part[j] * source[at];
                }
            }
        }
    } else {
        for (int k = 0; k < width; ++k) {
            const int at = i + k - radius;
            if (at >= 0 && at < n) {
                sum += weights[k] * source[at];
            }
        }
    }
    target[i] = sum;
}
