// C = A B: a warp computes 32 x 16 elements of C. Its lanes form 8 rows of 4, and each
// lane computes 4 x 4 sums.
constexpr int kRows = 32;
constexpr int kCols = 16;
constexpr int kDepth = 8;

__global__ void product(const float* __restrict__ A, const float* __restrict__ B,
                        float* __restrict__ C, int M, int N, int K)
{
    __shared__ __align__(16) float a[kDepth][kRows + 4];
    __shared__ __align__(16) float b[kDepth][kCols];
    const int lane = threadIdx.x;
    // Bit 0 of the lane moves down and bit 1 across: lanes i and i ^ 2 share a quad of
    // A, lanes i and i ^ 1 share a quad of B.
    const int down = lane / 8 * 2 + lane % 2, across = lane / 2 % 4;
    const int first_row = blockIdx.y * kRows, first_col = blockIdx.x * kCols;
    float sum[4][4] = {};
    for (int k0 = 0; k0 < K; k0 += kDepth) {
        for (int k = 0; k < kDepth; ++k) {
            const int row = first_row + lane, col = first_col + lane;
            a[k][lane] = row < M && k0 + k < K ? A[row * K + k0 + k] : 0.0f;
            if (lane < kCols)
                b[k][lane] = col < N && k0 + k < K ? B[(k0 + k) * N + col] : 0.0f;
        }
        __syncwarp();  // the tiles are complete before any lane reads them
        for (int k = 0; k < kDepth; ++k) {
            const float4 left = *reinterpret_cast<const float4*>(&a[k][down * 4]);
            const float4 above = *reinterpret_cast<const float4*>(&b[k][across * 4]);
            const float l[4] = {left.x, left.y, left.z, left.w};
            const float r[4] = {above.x, above.y, above.z, above.w};
#pragma unroll
            for (int i = 0; i < 16; ++i) {
                sum[i / 4][i % 4] += l[i / 4] * r[i % 4];
            }
        }
        // All reads of these tiles are done before the next tiles overwrite them.
        __syncwarp();
    }
#pragma unroll
    for (int i = 0; i < 16; ++i) {
        const int row = first_row + down * 4 + i / 4,
                  col = first_col + across * 4 + i % 4;
        if (row < M && col < N) C[row * N + col] = sum[i / 4][i % 4];
    }
}
