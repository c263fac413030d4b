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
    // TODO: 36 loads from the tile for 4 outputs. Each thread needs 18 floats: load
    // each of them once.
#pragma unroll 1
    for (int o = 0; o < kOut; ++o) {
        float sum = 0.0f;
#pragma unroll
        for (int tap = 0; tap < 9; ++tap) {
            sum += weights[tap] *
                   tile[threadIdx.y + tap / 3][threadIdx.x * kOut + o + tap % 3];
        }
        if (row < n && col + o < n) output[row * n + col + o] = sum;
    }
}
