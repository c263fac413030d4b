// Idea: one thread per output adds up its K x K x K weighted neighbours; zeros outside.
// From the rung before: the first rung. As in the original worklog, threadIdx.x counts
// planes, where it should count columns.
// Requires: nothing.
template <int K>
__global__ void conv3d_naive(const float* __restrict__ source,
                             const float* __restrict__ weights,
                             float* __restrict__ target, int n)
{
    constexpr int kRadius = K / 2;
    const int plane = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    const int col = blockIdx.z * blockDim.z + threadIdx.z;
    if (plane >= n || row >= n || col >= n) {
        return;
    }
    float sum = 0.0f;
    for (int dz = 0; dz < K; ++dz) {
        for (int dy = 0; dy < K; ++dy) {
            for (int dx = 0; dx < K; ++dx) {
                const int z = plane + dz - kRadius, y = row + dy - kRadius,
                          x = col + dx - kRadius;
                const bool inside =
                    z >= 0 && z < n && y >= 0 && y < n && x >= 0 && x < n;
                const float value =
                    inside ? source[(static_cast<size_t>(z) * n + y) * n + x] : 0.0f;
                sum += value * weights[(dz * K + dy) * K + dx];
            }
        }
    }
    target[(static_cast<size_t>(plane) * n + row) * n + col] = sum;
}
