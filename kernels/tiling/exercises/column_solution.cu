// C = A B through tiles of 32 x 32, in blocks of 32 x 8 threads. Each thread computes
// kOut elements of a column of C.
constexpr int kTile = 32;
constexpr int kRows = 8;
constexpr int kOut = kTile / kRows;

__global__ void product(
    const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C,
    int M, int N, int K)
{
    __shared__ float a[kTile][kTile];
    __shared__ float b[kTile][kTile];
    const int col = blockIdx.x * kTile + threadIdx.x;
    const int first = blockIdx.y * kTile + threadIdx.y;
    float sum[kOut] = {};
    for (int k0 = 0; k0 < K; k0 += kTile) {
        for (int o = 0; o < kOut; ++o) {
            const int y = threadIdx.y + o * kRows;
            const int row = first + o * kRows, a_col = k0 + threadIdx.x, b_row = k0 + y;
            a[y][threadIdx.x] = row < M && a_col < K ? A[row * K + a_col] : 0.0f;
            b[y][threadIdx.x] = b_row < K && col < N ? B[b_row * N + col] : 0.0f;
        }
        __syncthreads();  // both tiles are loaded before any thread reads them

#pragma unroll 1
        for (int k = 0; k < kTile; ++k) {
            const float above = b[k][threadIdx.x];
#pragma unroll
            for (int o = 0; o < kOut; ++o) {
                sum[o] += a[threadIdx.y + o * kRows][k] * above;
            }
        }
        __syncthreads();  // all threads have read the tiles before they are replaced
    }
    for (int o = 0; o < kOut; ++o) {
        const int row = first + o * kRows;
        if (row < M && col < N) {
            C[row * N + col] = sum[o];
        }
    }
}
