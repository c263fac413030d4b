// Idea: a small volume is over before a tile is filled: a thread takes what it needs straight from the caches, in float4.
// From the rung before: no shared memory, no barrier, no march; kOut outputs in a row per thread, one plane.
// Requires: a block of kThreads threads, arrays aligned to 16 bytes; kWidth = 4 where n is a multiple of 4, kWidth = 1
// otherwise.
constexpr int kThreads = 128;
constexpr int kOut = 4;

// Floats col to col + 3 of a row of n floats; zeros where it does not reach.
template <int kWidth>
__device__ float4 load_quad(const float* __restrict__ row, int col, int n)
{
    float4 quad = {};
    if constexpr (kWidth == 4) {
        if (col >= 0 && col < n) quad = *reinterpret_cast<const float4*>(row + col);
    } else {
        if (col >= 0 && col < n) quad.x = row[col];
        if (col + 1 >= 0 && col + 1 < n) quad.y = row[col + 1];
        if (col + 2 >= 0 && col + 2 < n) quad.z = row[col + 2];
        if (col + 3 >= 0 && col + 3 < n) quad.w = row[col + 3];
    }
    return quad;
}

template <int kWidth>
__device__ void store_quad(float* __restrict__ row, int col, int n, const float (&sum)[kOut])
{
    if constexpr (kWidth == 4) {
        *reinterpret_cast<float4*>(row + col) = {sum[0], sum[1], sum[2], sum[3]};
    } else {
        for (int o = 0; o < kOut; ++o) {
            if (col + o < n) row[col + o] = sum[o];
        }
    }
}

template <int K, int kWidth>
__global__ void __launch_bounds__(kThreads) conv3d_direct(
    const float* __restrict__ source, const float* __restrict__ weights, float* __restrict__ target, int n)
{
    constexpr int kRadius = K / 2;
    constexpr int kHalo = (kRadius + kOut - 1) / kOut;  // in quads, to the left and to the right
    constexpr int kRows = K == 3 ? K * K : K;           // how many rows are loaded before any is used
    const int quads = (n + kOut - 1) / kOut;
    const size_t at = static_cast<size_t>(blockIdx.x) * kThreads + threadIdx.x;
    const size_t line = at / quads;
    const int col = at % quads * kOut, row = line % n;
    const size_t plane = line / n;
    if (plane >= n) {
        return;
    }
    float sum[kOut] = {};
#pragma unroll 1
    for (int first = 0; first < K * K; first += kRows) {
        float window[kRows][(1 + 2 * kHalo) * kOut];
#pragma unroll
        for (int i = 0; i < kRows; ++i) {
            const int z = static_cast<int>(plane) + (first + i) / K - kRadius, y = row + (first + i) % K - kRadius;
            const bool inside = z >= 0 && z < n && y >= 0 && y < n;
            const float* const from = source + (inside ? (static_cast<size_t>(z) * n + y) * n : 0);
#pragma unroll
            for (int q = 0; q < 1 + 2 * kHalo; ++q) {
                *reinterpret_cast<float4*>(window[i] + q * kOut) =
                    inside ? load_quad<kWidth>(from, col + (q - kHalo) * kOut, n) : float4{};
            }
        }
#pragma unroll
        for (int i = 0; i < kRows; ++i) {
#pragma unroll
            for (int dx = 0; dx < K; ++dx) {
                const float weight = weights[(first + i) * K + dx];
#pragma unroll
                for (int o = 0; o < kOut; ++o) {
                    sum[o] += weight * window[i][kHalo * kOut - kRadius + dx + o];
                }
            }
        }
    }
    store_quad<kWidth>(target + (plane * n + row) * n, col, n, sum);
}
