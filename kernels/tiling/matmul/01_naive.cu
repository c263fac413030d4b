// Idea: one thread per element of C; neighbouring threads compute neighbouring rows.
// From the rung before: the first rung, slow on purpose: the 32 lanes of a warp read 32
// different rows of A.
// Requires: nothing.
__global__ void matmul_naive(
    const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C,
    int M, int N, int K)
{
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    const int col = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < M && col < N) {
        float sum = 0.0f;
        for (int k = 0; k < K; ++k) {
            sum += A[static_cast<size_t>(row) * K + k] *
                   B[static_cast<size_t>(k) * N + col];
        }
        C[static_cast<size_t>(row) * N + col] = sum;
    }
}
