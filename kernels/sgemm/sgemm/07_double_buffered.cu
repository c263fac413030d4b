// Idea: two pairs of tiles take turns: the next pair is loaded while this one is used.
// From the rung before: loads go to registers first and to shared memory last; one
// barrier per round instead of two.
// Requires: a block of kThreads threads; with kWidth = 4 all rows start at multiples of
// 16 bytes, and n and k are multiples of 4.
#include "quads.cuh"

constexpr int kTile = 128;
constexpr int kDepth = 8;
constexpr int kOut = 8;
constexpr int kThreads = 256;
// Lanes that store a row of A for different k use different banks, and each quad still
// starts at a multiple of 16 bytes.
constexpr int kPitch = kTile + 4;
// A warp's tile is 64 x 32 and its lanes 8 x 4; eight warps make the block's tile.
constexpr int kLanesDown = 8;
constexpr int kLanesAcross = 4;
constexpr int kWarpRows = kLanesDown * kOut;
constexpr int kWarpCols = kLanesAcross * kOut;
static_assert(kThreads * kOut * kOut == kTile * kTile,
              "each thread computes kOut x kOut elements");
static_assert(kThreads * 4 == kTile * kDepth,
              "each thread loads one quad of A and one of B");

template <int kWidth>
__global__ void __launch_bounds__(kThreads, 2)
    sgemm_double_buffered(int M, int N, int K, float alpha, const float* __restrict__ A,
                          int lda, const float* __restrict__ B, int ldb, float beta,
                          float* __restrict__ C, int ldc)
{
    __shared__ __align__(16) float a[2][kDepth][kPitch];
    __shared__ __align__(16) float b[2][kDepth][kTile];
    const int first_row = blockIdx.y * kTile, first_col = blockIdx.x * kTile;
    const int a_line = threadIdx.x / (kDepth / 4), a_k = threadIdx.x % (kDepth / 4) * 4;
    const int b_line = threadIdx.x / (kTile / 4), b_col = threadIdx.x % (kTile / 4) * 4;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    // Lanes 2i and 2i + 1 read the same quad of B, lanes i and i ^ 2 the same quad
    // of A.
    const int down = lane / 8 * 2 + lane % 2, across = lane / 2 % kLanesAcross;
    const int line = warp / (kTile / kWarpCols) * kWarpRows + down * 4;
    const int col = warp % (kTile / kWarpCols) * kWarpCols + across * 4;
    const float* from_a = A + static_cast<size_t>(first_row + a_line) * lda + a_k;
    const float* from_b = B + static_cast<size_t>(b_line) * ldb + first_col + b_col;
    float4 part, quad;
    const auto fetch = [&](int k0) {
        part =
            load_quad<kWidth>(from_a + k0, first_row + a_line < M ? K - k0 - a_k : 0);
        quad = load_quad<kWidth>(from_b + static_cast<size_t>(k0) * ldb,
                                 k0 + b_line < K ? N - first_col - b_col : 0);
    };
    const auto put = [&](int turn) {
        a[turn][a_k + 0][a_line] = part.x;
        a[turn][a_k + 1][a_line] = part.y;
        a[turn][a_k + 2][a_line] = part.z;
        a[turn][a_k + 3][a_line] = part.w;
        *reinterpret_cast<float4*>(&b[turn][b_line][b_col]) = quad;
    };
    float sum[kOut][kOut] = {};
    fetch(0);
    put(0);
    __syncthreads();  // the first tiles are complete before any thread reads them
    for (int k0 = 0, turn = 0; k0 < K; k0 += kDepth, turn ^= 1) {
        const bool more = k0 + kDepth < K;
        if (more) fetch(k0 + kDepth);
#pragma unroll
        for (int k = 0; k < kDepth; ++k) {
            float left[kOut], above[kOut];
#pragma unroll
            for (int q = 0; q < kOut; q += 4) {
                *reinterpret_cast<float4*>(left + q) = *reinterpret_cast<const float4*>(
                    &a[turn][k][line + q * kLanesDown]);
                *reinterpret_cast<float4*>(above + q) =
                    *reinterpret_cast<const float4*>(
                        &b[turn][k][col + q * kLanesAcross]);
            }
#pragma unroll
            for (int i = 0; i < kOut; ++i) {
#pragma unroll
                for (int j = 0; j < kOut; ++j) {
                    sum[i][j] += left[i] * above[j];
                }
            }
        }
        if (more) put(turn ^ 1);
        __syncthreads();  // the next tiles are complete; all reads of these are done
    }
#pragma unroll
    for (int i = 0; i < kOut; ++i) {
        const int row = first_row + line + i / 4 * 4 * kLanesDown + i % 4;
#pragma unroll
        for (int q = 0; q < kOut; q += 4) {
            if (row < M) {
                const int at = first_col + col + q * kLanesAcross;
                blend_quad<kWidth>(C + static_cast<size_t>(row) * ldc + at, sum[i] + q,
                                   alpha, beta, N - at);
            }
        }
    }
}
