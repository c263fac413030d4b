// Exhibit. Source: the worklog on a 3D convolution.
// Weights are read four at a time if K is a multiple of 4. The values of K in use are
// 3, 7, 9 and 11: the wide load never runs, and the kernel timed as "float4" is really
// the previous one. UNGUARDED drops the test: then the rows of weights, K floats apart,
// do not start at multiples of 16 bytes.
extern "C" __global__ void row_of_weights(const float* __restrict__ a,
                                          const float* __restrict__ weights,
                                          float* __restrict__ out, int n, int K)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x >= n) {
        return;
    }
    const int radius = K / 2;
    float sum = 0.0f;
    for (int row = 0; row < K; ++row) {
        int k = 0;
#ifndef UNGUARDED
        if (K % 4 == 0)
#endif
        {
            for (; k + 4 <= K; k += 4) {
                const float4 four =
                    *reinterpret_cast<const float4*>(&weights[row * K + k]);
                const float w[4] = {four.x, four.y, four.z, four.w};
                for (int i = 0; i < 4; ++i) {
                    const int r = y + row - radius, c = x + k + i - radius;
                    if (r >= 0 && r < n && c >= 0 && c < n) {
                        sum += a[static_cast<size_t>(r) * n + c] * w[i];
                    }
                }
            }
        }
        for (; k < K; ++k) {
            const int r = y + row - radius, c = x + k - radius;
            if (r >= 0 && r < n && c >= 0 && c < n) {
                sum += a[static_cast<size_t>(r) * n + c] * weights[row * K + k];
            }
        }
    }
    out[static_cast<size_t>(y) * n + x] = sum;
}
