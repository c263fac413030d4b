// Idea: number threads along rows, so that neighbouring lanes read neighbouring inputs.
// From the rung before: a one-dimensional grid; column, row and plane follow from the
// index of the output.
// Requires: a block of kThreads threads.
constexpr int kThreads = 256;

template <int K>
__global__ void __launch_bounds__(kThreads)
    conv3d_coalesced(const float* __restrict__ source,
                     const float* __restrict__ weights, float* __restrict__ target,
                     int n)
{
    constexpr int kRadius = K / 2;
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
            for (int dx = 0; dx < K; ++dx) {
                const int z = static_cast<int>(plane) + dz - kRadius,
                          y = row + dy - kRadius, x = col + dx - kRadius;
                const bool inside =
                    z >= 0 && z < n && y >= 0 && y < n && x >= 0 && x < n;
                const float value =
                    inside ? source[(static_cast<size_t>(z) * n + y) * n + x] : 0.0f;
                sum += value * weights[(dz * K + dy) * K + dx];
            }
        }
    }
    target[at] = sum;
}
