// M and N are multiples of 32 and the grid covers C exactly, so no bounds are checked.
__global__ void product(const float* A, const float* B, float* C, int M, int N, int K)
{
    const int row = blockIdx.y * 32 + threadIdx.y;
    const int col = blockIdx.x * 32 + threadIdx.x;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) {
        sum += A[row * K + k] * B[k * N + col];
    }
    C[row * N + col] = sum;
}
