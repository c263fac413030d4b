// Idea: a block keeps one square tile of A and one of B in shared memory.
// From the rung before: a block loads each float of its tiles from global memory once,
// not once per warp that needs it.
// Requires: a block of kTile x kTile threads.
constexpr int kTile = 32;

__global__ void __launch_bounds__(kTile * kTile) matmul_tiled(
    const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C,
    int M, int N, int K)
{
    __shared__ float a[kTile][kTile];
    __shared__ float b[kTile][kTile];
    const int row = blockIdx.y * kTile + threadIdx.y;
    const int col = blockIdx.x * kTile + threadIdx.x;
    float sum = 0.0f;
    for (int k0 = 0; k0 < K; k0 += kTile) {
        const int a_col = k0 + threadIdx.x;
        const int b_row = k0 + threadIdx.y;
        // Elements outside the matrices are zero, so the last tile of K needs no
        // separate loop.
        a[threadIdx.y][threadIdx.x] =
            row < M && a_col < K ? A[static_cast<size_t>(row) * K + a_col] : 0.0f;
        b[threadIdx.y][threadIdx.x] =
            b_row < K && col < N ? B[static_cast<size_t>(b_row) * N + col] : 0.0f;
        __syncthreads();  // both tiles are loaded before any thread reads them

        for (int k = 0; k < kTile; ++k) {
            sum += a[threadIdx.y][k] * b[k][threadIdx.x];
        }
        __syncthreads();  // all threads have read the tiles before they are replaced
    }
    if (row < M && col < N) {
        C[static_cast<size_t>(row) * N + col] = sum;
    }
}
