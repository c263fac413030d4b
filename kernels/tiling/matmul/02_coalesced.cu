// Idea: neighbouring threads take neighbouring columns of B and C.
// From the rung before: threadIdx.x counts columns instead of rows; the arithmetic is
// unchanged.
// Requires: nothing.
__global__ void matmul_coalesced(
    const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C,
    int M, int N, int K)
{
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    const int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < M && col < N) {
        float sum = 0.0f;
        for (int k = 0; k < K; ++k) {
            sum += A[static_cast<size_t>(row) * K + k] *
                   B[static_cast<size_t>(k) * N + col];
        }
        C[static_cast<size_t>(row) * N + col] = sum;
    }
}
