__global__ void first_product(int M, int N, const float* A, const float* B, float* C)
{
    __shared__ float tile[256];
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    const int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < M && col < N) {
        Tile[threadIdx.x] = A[row * K];
        C[row * N + col] = tile[threadIdx.x] * B[col];
    }
}
