// Idea: a small volume does not fill a tile, so read straight from the caches.
// From the rung before: no shared memory, no barrier, no streaming; four outputs per
// thread; if there are few weights, they are passed by value.
// Requires: a block of kAcross x kDown threads, arrays aligned to 16 bytes; kWidth = 4
// where n is a multiple of 4, kWidth = 1 otherwise. The 27 weights of K = 3 are passed
// by value, other weights by address.
constexpr int kAcross = 16;
constexpr int kDown = 16;
constexpr int kOut = 4;

// The weights of K = 3, passed by value: a multiply-add reads them from the constant
// bank.
struct Few {
    float at[27];
};

// Floats col to col + 3 of a row of n floats; zeros outside the row.
template <int kWidth>
__device__ float4 load_quad(const float* __restrict__ row, int col, int n)
{
    float4 quad = {};
    if constexpr (kWidth == 4) {
        if (col < n) quad = *reinterpret_cast<const float4*>(row + col);
    } else {
        if (col < n) quad.x = row[col];
        if (col + 1 < n) quad.y = row[col + 1];
        if (col + 2 < n) quad.z = row[col + 2];
        if (col + 3 < n) quad.w = row[col + 3];
    }
    return quad;
}

template <int kWidth>
__device__ void store_quad(float* __restrict__ row, int col, int n,
                           const float (&sum)[kOut])
{
    if constexpr (kWidth == 4) {
        *reinterpret_cast<float4*>(row + col) = {sum[0], sum[1], sum[2], sum[3]};
    } else {
        for (int o = 0; o < kOut; ++o) {
            if (col + o < n) row[col + o] = sum[o];
        }
    }
}

template <int K, int kWidth, typename Weight>
__device__ void convolve(const float* __restrict__ source, Weight weight,
                         float* __restrict__ target, int n)
{
    constexpr int kRadius = K / 2;
    // The number of rows to load before any is used.
    constexpr int kRows = K == 3 ? K * K : K;
    const int col = (blockIdx.x * kAcross + threadIdx.x) * kOut;
    const int row = blockIdx.y * kDown + threadIdx.y, plane = blockIdx.z;
    const size_t line = (static_cast<size_t>(plane) * n + row) * n;
    const float* const here = source + line;
    float sum[kOut] = {};
#pragma unroll 1
    for (int first = 0; first < K * K; first += kRows) {
        float window[kRows][kOut + K - 1];
#pragma unroll
        for (int i = 0; i < kRows; ++i) {
            const int dz = (first + i) / K - kRadius, dy = (first + i) % K - kRadius;
            const bool inside =
                plane + dz >= 0 && plane + dz < n && row + dy >= 0 && row + dy < n;
            const float* const from = here + (dz * n + dy) * n;
            const float4 own = inside ? load_quad<kWidth>(from, col, n) : float4{};
            window[i][kRadius] = own.x;
            window[i][kRadius + 1] = own.y;
            window[i][kRadius + 2] = own.z;
            window[i][kRadius + 3] = own.w;
#pragma unroll
            for (int x = 0; x < kRadius; ++x) {
                const int left = col - kRadius + x, right = col + kOut + x;
                window[i][x] = inside && left >= 0 && left < n ? from[left] : 0.0f;
                window[i][kRadius + kOut + x] =
                    inside && right < n ? from[right] : 0.0f;
            }
        }
#pragma unroll
        for (int i = 0; i < kRows; ++i) {
#pragma unroll
            for (int dx = 0; dx < K; ++dx) {
                const float tap = weight((first + i) * K + dx);
#pragma unroll
                for (int o = 0; o < kOut; ++o) {
                    sum[o] += tap * window[i][dx + o];
                }
            }
        }
    }
    if (row < n && col < n) {
        store_quad<kWidth>(target + line, col, n, sum);
    }
}

template <int kWidth>
__global__ void __launch_bounds__(kAcross* kDown)
    conv3d_untiled_few(const float* __restrict__ source, const Few weights,
                       float* __restrict__ target, int n)
{
    convolve<3, kWidth>(source, [&](int i) { return weights.at[i]; }, target, n);
}

template <int K, int kWidth>
__global__ void __launch_bounds__(kAcross* kDown)
    conv3d_untiled(const float* __restrict__ source, const float* __restrict__ weights,
                   float* __restrict__ target, int n)
{
    convolve<K, kWidth>(source, [&](int i) { return weights[i]; }, target, n);
}
