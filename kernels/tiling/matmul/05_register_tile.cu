// Idea: a thread computes kOut x kOut elements from 2 kOut floats per step.
// From the rung before: a square of sums in registers instead of a column; the block's
// tile of C is 128 x 128.
// Requires: a block of kThreads threads.
constexpr int kTile = 128;
constexpr int kDepth = 8;
constexpr int kOut = 8;
constexpr int kAcross = kTile / kOut;
constexpr int kThreads = 256;
static_assert(
    kThreads == kAcross * kAcross, "each thread computes kOut x kOut elements");
static_assert(
    kTile * kDepth % kThreads == 0, "all threads load the same number of floats");

// Two blocks per SM: the compiler uses at most 128 registers per thread.
__global__ void __launch_bounds__(kThreads, 2) matmul_register_tile(
    const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C,
    int M, int N, int K)
{
    __shared__ float a[kTile][kDepth];
    __shared__ float b[kDepth][kTile];
    const int first_row = blockIdx.y * kTile, first_col = blockIdx.x * kTile;
    const int line = threadIdx.x / kAcross * kOut;
    const int col = threadIdx.x % kAcross * kOut;
    float sum[kOut][kOut] = {};
    for (int k0 = 0; k0 < K; k0 += kDepth) {
#pragma unroll
        for (int i = threadIdx.x; i < kTile * kDepth; i += kThreads) {
            const int a_line = i / kDepth, a_k = i % kDepth;
            const bool inside = first_row + a_line < M && k0 + a_k < K;
            a[a_line][a_k] =
                inside ? A[static_cast<size_t>(first_row + a_line) * K + k0 + a_k]
                       : 0.0f;
        }
#pragma unroll
        for (int i = threadIdx.x; i < kDepth * kTile; i += kThreads) {
            const int b_line = i / kTile, b_col = i % kTile;
            const bool inside = k0 + b_line < K && first_col + b_col < N;
            b[b_line][b_col] =
                inside ? B[static_cast<size_t>(k0 + b_line) * N + first_col + b_col]
                       : 0.0f;
        }
        __syncthreads();  // both tiles are loaded before any thread reads them

#pragma unroll
        for (int k = 0; k < kDepth; ++k) {
            float left[kOut], above[kOut];
#pragma unroll
            for (int i = 0; i < kOut; ++i) {
                left[i] = a[line + i][k];
                above[i] = b[k][col + i];
            }
#pragma unroll
            for (int i = 0; i < kOut; ++i) {
#pragma unroll
                for (int j = 0; j < kOut; ++j) {
                    sum[i][j] += left[i] * above[j];
                }
            }
        }
        __syncthreads();  // all threads have read the tiles before they are replaced
    }
#pragma unroll
    for (int i = 0; i < kOut; ++i) {
#pragma unroll
        for (int j = 0; j < kOut; ++j) {
            if (first_row + line + i < M && first_col + col + j < N) {
                C[static_cast<size_t>(first_row + line + i) * N + first_col + col + j] =
                    sum[i][j];
            }
        }
    }
}
