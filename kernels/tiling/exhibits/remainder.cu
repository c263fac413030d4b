// C = A B for square matrices of side n, through tiles in shared memory.
constexpr int kTile = 16;

__global__ void product(
    const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C,
    int n)
{
    __shared__ float a[kTile][kTile];
    __shared__ float b[kTile][kTile];
    const int row = blockIdx.y * kTile + threadIdx.y;
    const int col = blockIdx.x * kTile + threadIdx.x;
    float sum = 0.0f;
    for (int step = 0; step < n / kTile; ++step) {
        a[threadIdx.y][threadIdx.x] =
            row < n ? A[row * n + step * kTile + threadIdx.x] : 0.0f;
        b[threadIdx.y][threadIdx.x] =
            col < n ? B[(step * kTile + threadIdx.y) * n + col] : 0.0f;
        __syncthreads();  // both tiles are loaded before any thread reads them
        for (int k = 0; k < kTile; ++k) {
            sum += a[threadIdx.y][k] * b[k][threadIdx.x];
        }
        __syncthreads();  // all threads have read the tiles before they are replaced
    }
    if (row < n && col < n) {
        C[row * n + col] = sum;
    }
}
