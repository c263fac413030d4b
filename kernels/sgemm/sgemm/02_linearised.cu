// Idea: store B's tile in read order, so that 16 lanes read 16 neighbouring floats.
// From the rung before: the columns of b are permuted; now every access to b is 4 bytes
// wide.
// Requires: a block of kThreads threads; with kWidth = 4 all rows start at multiples of
// 16 bytes, and n and k are multiples of 4.
#include "quads.cuh"

constexpr int kTile = 128;
constexpr int kDepth = 8;
constexpr int kOut = 8;
constexpr int kAcross = kTile / kOut;
constexpr int kThreads = 256;
static_assert(kThreads == kAcross * kAcross,
              "each thread computes kOut x kOut elements");
static_assert(kThreads * 4 == kTile * kDepth,
              "each thread loads one quad of A and one of B");

template <int kWidth>
__global__ void __launch_bounds__(kThreads, 2)
    sgemm_linearised(int M, int N, int K, float alpha, const float* __restrict__ A,
                     int lda, const float* __restrict__ B, int ldb, float beta,
                     float* __restrict__ C, int ldc)
{
    __shared__ __align__(16) float a[kDepth][kTile];
    // Float j of thread column c is at [j][c].
    __shared__ float b[kDepth][kOut][kAcross];
    const int first_row = blockIdx.y * kTile, first_col = blockIdx.x * kTile;
    const int a_line = threadIdx.x / (kDepth / 4), a_k = threadIdx.x % (kDepth / 4) * 4;
    const int b_line = threadIdx.x / (kTile / 4), b_col = threadIdx.x % (kTile / 4) * 4;
    const int line = threadIdx.x / kAcross * kOut, col = threadIdx.x % kAcross * kOut;
    const float* from_a = A + static_cast<size_t>(first_row + a_line) * lda + a_k;
    const float* from_b = B + static_cast<size_t>(b_line) * ldb + first_col + b_col;
    float sum[kOut][kOut] = {};
    for (int k0 = 0; k0 < K; k0 += kDepth) {
        const float4 part =
            load_quad<kWidth>(from_a + k0, first_row + a_line < M ? K - k0 - a_k : 0);
        const float4 quad =
            load_quad<kWidth>(from_b + static_cast<size_t>(k0) * ldb,
                              k0 + b_line < K ? N - first_col - b_col : 0);
        a[a_k + 0][a_line] = part.x;
        a[a_k + 1][a_line] = part.y;
        a[a_k + 2][a_line] = part.z;
        a[a_k + 3][a_line] = part.w;
        float* column = &b[b_line][b_col % kOut][b_col / kOut];
        column[0 * kAcross] = quad.x;
        column[1 * kAcross] = quad.y;
        column[2 * kAcross] = quad.z;
        column[3 * kAcross] = quad.w;
        __syncthreads();  // both tiles are complete before any thread reads them

#pragma unroll
        for (int k = 0; k < kDepth; ++k) {
            float left[kOut], above[kOut];
#pragma unroll
            for (int q = 0; q < kOut; q += 4) {
                *reinterpret_cast<float4*>(left + q) =
                    *reinterpret_cast<const float4*>(&a[k][line + q]);
            }
#pragma unroll
            for (int j = 0; j < kOut; ++j) {
                above[j] = b[k][j][col / kOut];
            }
#pragma unroll
            for (int i = 0; i < kOut; ++i) {
#pragma unroll
                for (int j = 0; j < kOut; ++j) {
                    sum[i][j] += left[i] * above[j];
                }
            }
        }
        // All reads of these tiles are done before the next tiles overwrite them.
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < kOut; ++i) {
        const int row = first_row + line + i;
#pragma unroll
        for (int q = 0; q < kOut; q += 4) {
            if (row < M) {
                const int at = first_col + col + q;
                blend_quad<kWidth>(C + static_cast<size_t>(row) * ldc + at, sum[i] + q,
                                   alpha, beta, N - at);
            }
        }
    }
}
