// One map convolved with 3 x 3 weights: a thread computes kOut neighbouring outputs of
// a row from a tile in shared memory.
constexpr int kRows = 8;
constexpr int kAcross = 16;
constexpr int kOut = 4;
constexpr int kHigh = kRows + 2;
constexpr int kWide = kAcross * kOut + 2;

__global__ void convolve(const float* __restrict__ input,
                         const float* __restrict__ weights, float* __restrict__ output,
                         int n)
{
    __shared__ float tile[kHigh][kWide];
    const int first_row = blockIdx.y * kRows, first_col = blockIdx.x * kAcross * kOut;
    for (int i = threadIdx.y * kAcross + threadIdx.x; i < kHigh * kWide;
         i += kRows * kAcross) {
        const int row = first_row + i / kWide - 1, col = first_col + i % kWide - 1;
        const bool inside = row >= 0 && row < n && col >= 0 && col < n;
        tile[i / kWide][i % kWide] = inside ? input[row * n + col] : 0.0f;
    }
    __syncthreads();  // the tile is complete before any thread reads it

    const int row = first_row + threadIdx.y, col = first_col + threadIdx.x * kOut;
    float sum[kOut] = {};
#pragma unroll
    for (int down = 0; down < 3; ++down) {
        float window[kOut + 2];
#pragma unroll
        for (int i = 0; i < kOut + 2; ++i) {
            window[i] = tile[threadIdx.y + down][threadIdx.x * kOut + i];
        }
#pragma unroll
        for (int right = 0; right < 3; ++right) {
#pragma unroll
            for (int o = 0; o < kOut; ++o) {
                sum[o] += weights[down * 3 + right] * window[o + right];
            }
        }
    }
#pragma unroll
    for (int o = 0; o < kOut; ++o) {
        if (row < n && col + o < n) output[row * n + col + o] = sum[o];
    }
}
