// Idea: a thread computes kOut elements of a column; one float of B serves all.
// From the rung before: a column of sums in registers; the block's tile of C is 64 x
// 64, and its tiles of A and B are thin.
// Requires: a block of kThreads threads.
constexpr int kTile = 64;
constexpr int kDepth = 8;
constexpr int kOut = 8;
constexpr int kThreads = 512;
static_assert(kThreads == kTile * kTile / kOut, "each thread computes kOut elements");
static_assert(
    kThreads == kTile * kDepth, "each thread loads one float of A and one of B");

__global__ void __launch_bounds__(kThreads) matmul_register_column(
    const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C,
    int M, int N, int K)
{
    __shared__ float a[kTile][kDepth];
    __shared__ float b[kDepth][kTile];
    const int a_line = threadIdx.x / kDepth, a_k = threadIdx.x % kDepth;
    const int b_line = threadIdx.x / kTile, b_col = threadIdx.x % kTile;
    const int first_row = blockIdx.y * kTile, first_col = blockIdx.x * kTile;
    const int line = threadIdx.x / kTile * kOut;
    const int col = threadIdx.x % kTile;
    float sum[kOut] = {};
    for (int k0 = 0; k0 < K; k0 += kDepth) {
        const bool in_a = first_row + a_line < M && k0 + a_k < K;
        const bool in_b = k0 + b_line < K && first_col + b_col < N;
        a[a_line][a_k] =
            in_a ? A[static_cast<size_t>(first_row + a_line) * K + k0 + a_k] : 0.0f;
        b[b_line][b_col] =
            in_b ? B[static_cast<size_t>(k0 + b_line) * N + first_col + b_col] : 0.0f;
        __syncthreads();  // both tiles are loaded before any thread reads them

#pragma unroll
        for (int k = 0; k < kDepth; ++k) {
            const float above = b[k][col];
#pragma unroll
            for (int i = 0; i < kOut; ++i) {
                sum[i] += a[line + i][k] * above;
            }
        }
        __syncthreads();  // all threads have read the tiles before they are replaced
    }
#pragma unroll
    for (int i = 0; i < kOut; ++i) {
        if (first_row + line + i < M && first_col + col < N) {
            C[static_cast<size_t>(first_row + line + i) * N + first_col + col] = sum[i];
        }
    }
}
