// Weighted sums across the planes: target[z] = sum over d of weights[d] * source[z + d
// - kRadius], zeros outside.
constexpr int kTaps = 5;
constexpr int kRadius = kTaps / 2;

__global__ void stream(const float* __restrict__ source,
                      const float* __restrict__ weights, float* __restrict__ target,
                      int planes, int area)
{
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= area) {
        return;
    }
    // TODO: every float of the source is loaded five times, once for each output that
    // needs it. Load it once.
    for (int z = 0; z < planes; ++z) {
        float sum = 0.0f;
        for (int d = 0; d < kTaps; ++d) {
            const int from = z + d - kRadius;
            if (from >= 0 && from < planes) {
                sum += weights[d] * source[from * area + at];
            }
        }
        target[z * area + at] = sum;
    }
}
