// C = A B through tiles of 16 x 16: a thread computes one element of C.
constexpr int kTile = 16;

__global__ void product(const float* __restrict__ A, const float* __restrict__ B,
                        float* __restrict__ C, int M, int N, int K)
{
    __shared__ float a[2][kTile][kTile];
    __shared__ float b[2][kTile][kTile];
    const int x = threadIdx.x, y = threadIdx.y;
    const int row = blockIdx.y * kTile + y, col = blockIdx.x * kTile + x;
    float sum = 0.0f;
    for (int k0 = 0, turn = 0; k0 < K; k0 += kTile, turn ^= 1) {
        a[turn][y][x] = row < M && k0 + x < K ? A[row * K + k0 + x] : 0.0f;
        b[turn][y][x] = k0 + y < K && col < N ? B[(k0 + y) * N + col] : 0.0f;
        // These tiles are complete, and all reads of the ones replaced next are done.
        __syncthreads();
        for (int k = 0; k < kTile; ++k) {
            sum += a[turn][y][k] * b[turn][k][x];
        }
    }
    if (row < M && col < N) C[row * N + col] = sum;
}
