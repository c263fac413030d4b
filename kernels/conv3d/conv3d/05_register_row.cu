// Idea: a thread has kOut outputs in a row and uses each float up to K times.
// From the rung before: windows and weights are read as float4; kOut sums per thread;
// the tile is 32 x 8 x 8 outputs.
// Requires: a block of kThreads threads; (7 + K)^2 rows of the tile and K^2 rows of
// weights in shared memory.
constexpr int kAcross = 4;
constexpr int kDown = 8;
constexpr int kThreads = 256;
constexpr int kOut = 8;
constexpr int kQuad = 4;

template <int K>
__global__ void __launch_bounds__(kThreads)
    conv3d_register_row(const float* __restrict__ source,
                        const float* __restrict__ weights, float* __restrict__ target,
                        int n)
{
    constexpr int kRadius = K / 2;
    constexpr int kHigh = kDown + K - 1;
    constexpr int kWindow = (kOut + K - 1 + kQuad - 1) / kQuad * kQuad;
    constexpr int kWide = (kAcross - 1) * kOut + kWindow;
    // An odd number of float4s, so that the windows of neighbouring rows are in
    // different banks.
    constexpr int kPitch = kWide / kQuad % 2 == 1 ? kWide : kWide + kQuad;
    constexpr int kTaps = (K + kQuad - 1) / kQuad * kQuad;
    extern __shared__ float4 shared[];
    float* const tile = reinterpret_cast<float*>(shared);
    float* const taps = tile + kHigh * kHigh * kPitch;
    const int first_col = blockIdx.x * kAcross * kOut, first_row = blockIdx.y * kDown,
              first_plane = blockIdx.z * kDown;
    for (int i = threadIdx.x; i < kHigh * kHigh * kPitch; i += kThreads) {
        const int x = first_col - kRadius + i % kPitch;
        const int y = first_row - kRadius + i / kPitch % kHigh;
        const int z = first_plane - kRadius + i / (kPitch * kHigh);
        const bool inside = z >= 0 && z < n && y >= 0 && y < n && x >= 0 && x < n;
        tile[i] = inside ? source[(static_cast<size_t>(z) * n + y) * n + x] : 0.0f;
    }
    for (int i = threadIdx.x; i < K * K * kTaps; i += kThreads) {
        taps[i] = i % kTaps < K ? weights[i / kTaps * K + i % kTaps] : 0.0f;
    }
    // Tile, halo and weights are complete before any thread reads them.
    __syncthreads();

    const int tx = threadIdx.x % kAcross, ty = threadIdx.x / kAcross % kDown,
              tz = threadIdx.x / (kAcross * kDown);
    float sum[kOut] = {};
#pragma unroll 1
    for (int dz = 0; dz < K; ++dz) {
#pragma unroll 1
        for (int dy = 0; dy < K; ++dy) {
            float window[kWindow], weight[kTaps];
            const float* const from =
                tile + ((tz + dz) * kHigh + ty + dy) * kPitch + tx * kOut;
#pragma unroll
            for (int i = 0; i < kWindow; i += kQuad) {
                *reinterpret_cast<float4*>(window + i) =
                    *reinterpret_cast<const float4*>(from + i);
            }
#pragma unroll
            for (int i = 0; i < kTaps; i += kQuad) {
                *reinterpret_cast<float4*>(weight + i) =
                    *reinterpret_cast<const float4*>(taps + (dz * K + dy) * kTaps + i);
            }
#pragma unroll
            for (int dx = 0; dx < K; ++dx) {
#pragma unroll
                for (int o = 0; o < kOut; ++o) {
                    sum[o] += weight[dx] * window[o + dx];
                }
            }
        }
    }
    const int row = first_row + ty, plane = first_plane + tz;
    if (plane < n && row < n) {
#pragma unroll
        for (int o = 0; o < kOut; ++o) {
            const int col = first_col + tx * kOut + o;
            if (col < n) {
                target[(static_cast<size_t>(plane) * n + row) * n + col] = sum[o];
            }
        }
    }
}
