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
    float weight[kTaps];
#pragma unroll
    for (int d = 0; d < kTaps; ++d) {
        weight[d] = weights[d];
    }
    float sum[kTaps] = {};  // sum[s] belongs to the output plane z - kRadius + s
    for (int z = 0; z < planes + kRadius; ++z) {
        const float value = z < planes ? source[z * area + at] : 0.0f;
#pragma unroll
        for (int s = 0; s < kTaps; ++s) {
            sum[s] += weight[kTaps - 1 - s] * value;
        }
        if (z >= kRadius) {
            target[(z - kRadius) * area + at] = sum[0];
        }
#pragma unroll
        for (int s = 0; s < kTaps; ++s) {
            sum[s] = s + 1 < kTaps ? sum[s + 1] : 0.0f;
        }
    }
}
