// Idea: load four weights at a time, from a copy with rows padded to whole float4s.
// From the rung before: an earlier launch makes the padded copy, because K is odd and
// rows of K floats are not whole float4s.
// Requires: a block of kThreads threads; padded has room for K * K * kPadded floats,
// aligned to 16 bytes.
constexpr int kThreads = 256;
constexpr int kQuad = 4;

// padded[dz][dy][dx] = weights[dz][dy][dx], and zero where dx is padding of the last
// float4.
template <int K>
__global__ void __launch_bounds__(kThreads)
    conv3d_pad_weights(const float* __restrict__ weights, float* __restrict__ padded)
{
    constexpr int kPadded = (K + kQuad - 1) / kQuad * kQuad;
    const int i = blockIdx.x * kThreads + threadIdx.x;
    if (i < K * K * kPadded) {
        padded[i] = i % kPadded < K ? weights[i / kPadded * K + i % kPadded] : 0.0f;
    }
}

template <int K>
__global__ void __launch_bounds__(kThreads)
    conv3d_vectorised(const float* __restrict__ source,
                      const float* __restrict__ padded, float* __restrict__ target,
                      int n)
{
    constexpr int kRadius = K / 2;
    constexpr int kPadded = (K + kQuad - 1) / kQuad * kQuad;
    const size_t at = static_cast<size_t>(blockIdx.x) * kThreads + threadIdx.x;
    const size_t line = at / n;
    const int col = at % n, row = line % n;
    const size_t plane = line / n;
    if (plane >= n) {
        return;
    }
    float sum = 0.0f;
    for (int dz = 0; dz < K; ++dz) {
        for (int dy = 0; dy < K; ++dy) {
            for (int dx = 0; dx < K; dx += kQuad) {
                const float4 four = *reinterpret_cast<const float4*>(
                    padded + (dz * K + dy) * kPadded + dx);
                const float weight[kQuad] = {four.x, four.y, four.z, four.w};
#pragma unroll
                for (int i = 0; i < kQuad; ++i) {
                    const int z = static_cast<int>(plane) + dz - kRadius,
                              y = row + dy - kRadius;
                    const int x = col + dx + i - kRadius;
                    const bool inside =
                        z >= 0 && z < n && y >= 0 && y < n && x >= 0 && x < n;
                    // Skip weights that only pad the float4: zero times NaN would be
                    // NaN.
                    if (dx + i < K) {
                        const float value =
                            inside ? source[(static_cast<size_t>(z) * n + y) * n + x]
                                   : 0.0f;
                        sum += value * weight[i];
                    }
                }
            }
        }
    }
    target[at] = sum;
}
