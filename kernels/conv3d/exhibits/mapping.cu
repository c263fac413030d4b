// Exhibit. Source: the worklog on a 3D convolution.
// The result is correct. The plane varies fastest with the thread index: lanes read the
// tile 400 words apart, from 8 of the 32 banks, and store one plane apart. Also, the
// halo is always that of the largest filter, 6 on each side.
constexpr int kTile = 8;
constexpr int kLargestRadius = 6;
constexpr int kWide = kTile + 2 * kLargestRadius;

extern "C" __global__ void tiled(const float* __restrict__ source,
                                 const float* __restrict__ weights,
                                 float* __restrict__ target, int n, int K)
{
    __shared__ float tile[kWide * kWide * kWide];
    const int radius = K / 2;
    const int tx = threadIdx.x % kTile, ty = threadIdx.x / kTile % kTile,
              tz = threadIdx.x / (kTile * kTile);
    const int first_i = blockIdx.x * kTile, first_j = blockIdx.y * kTile,
              first_k = blockIdx.z * kTile;
    for (int at = threadIdx.x; at < kWide * kWide * kWide; at += blockDim.x) {
        const int i = first_i + at / (kWide * kWide) - radius;
        const int j = first_j + at / kWide % kWide - radius;
        const int k = first_k + at % kWide - radius;
        const bool inside = i >= 0 && i < n && j >= 0 && j < n && k >= 0 && k < n;
        tile[at] = inside ? source[(static_cast<size_t>(i) * n + j) * n + k] : 0.0f;
    }
    __syncthreads();  // the tile is complete before any thread reads it
    float sum = 0.0f;
    for (int x = 0; x < K; ++x) {
        for (int y = 0; y < K; ++y) {
            for (int z = 0; z < K; ++z) {
                sum += tile[((tx + x) * kWide + ty + y) * kWide + tz + z] *
                       weights[(x * K + y) * K + z];
            }
        }
    }
    const int i = first_i + tx, j = first_j + ty, k = first_k + tz;
    if (i < n && j < n && k < n) {
        target[(static_cast<size_t>(i) * n + j) * n + k] = sum;
    }
}
