// C = A B through tiles of 16 x 16: a thread computes one element of C.
constexpr int kTile = 16;

__global__ void product(const float* __restrict__ A, const float* __restrict__ B,
                        float* __restrict__ C, int M, int N, int K)
{
    // TODO: use two pairs of tiles in turn, so that one barrier per round is enough.
    __shared__ float a[kTile][kTile];
    __shared__ float b[kTile][kTile];
    const int x = threadIdx.x, y = threadIdx.y;
    const int row = blockIdx.y * kTile + y, col = blockIdx.x * kTile + x;
    float sum = 0.0f;
    for (int k0 = 0; k0 < K; k0 += kTile) {
        a[y][x] = row < M && k0 + x < K ? A[row * K + k0 + x] : 0.0f;
        b[y][x] = k0 + y < K && col < N ? B[(k0 + y) * N + col] : 0.0f;
        __syncthreads();  // the tiles are complete before any thread reads them
        for (int k = 0; k < kTile; ++k) {
            sum += a[y][k] * b[k][x];
        }
        // All reads of these tiles are done before the next tiles overwrite them.
        __syncthreads();
    }
    if (row < M && col < N) C[row * N + col] = sum;
}
