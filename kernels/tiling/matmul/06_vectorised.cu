// Idea: 16 bytes per access in global and shared memory; A's tile is stored transposed.
// From the rung before: float4; a thread's 8 x 8 sums are four squares of 4 x 4, so
// that lanes read adjacent float4s.
// Requires: a block of kThreads threads; all arrays aligned to 16 bytes; kWidth = 4
// where n and k are multiples of 4, kWidth = 1 otherwise.
#include "../../common/quads.cuh"

constexpr int kTile = 128;
constexpr int kHalf = kTile / 2;
constexpr int kDepth = 8;
constexpr int kOut = 8;
constexpr int kAcross = kTile / kOut;
constexpr int kThreads = 256;
// Four floats of padding per row of A's tile: lanes that store one row of A for
// different k use different banks.
constexpr int kPitch = kTile + 4;
static_assert(
    kThreads == kAcross * kAcross, "each thread computes kOut x kOut elements");
static_assert(
    kThreads * 4 == kTile * kDepth, "each thread loads one quad of A and one of B");

// Reads eight floats for one thread: a quad from each half of the tile's row.
__device__ void read_halves(float (&into)[kOut], const float* row, int quad)
{
    *reinterpret_cast<float4*>(into) = *reinterpret_cast<const float4*>(row + quad * 4);
    *reinterpret_cast<float4*>(into + 4) =
        *reinterpret_cast<const float4*>(row + kHalf + quad * 4);
}

template <int kWidth>
__global__ void __launch_bounds__(kThreads, 2) matmul_vectorised(
    const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C,
    int M, int N, int K)
{
    __shared__ __align__(16) float a[kDepth][kPitch];
    __shared__ __align__(16) float b[kDepth][kTile];
    const int first_row = blockIdx.y * kTile, first_col = blockIdx.x * kTile;
    const int a_line = threadIdx.x / (kDepth / 4), a_k = threadIdx.x % (kDepth / 4) * 4;
    const int b_line = threadIdx.x / (kTile / 4), b_col = threadIdx.x % (kTile / 4) * 4;
    const int down = threadIdx.x / kAcross, across = threadIdx.x % kAcross;
    const float* from_a = A + static_cast<size_t>(first_row + a_line) * K + a_k;
    const float* from_b = B + static_cast<size_t>(b_line) * N + first_col + b_col;
    float sum[kOut][kOut] = {};
    for (int k0 = 0; k0 < K; k0 += kDepth) {
        const float4 part =
            load_quad<kWidth>(from_a + k0, first_row + a_line < M ? K - k0 - a_k : 0);
        a[a_k + 0][a_line] = part.x;
        a[a_k + 1][a_line] = part.y;
        a[a_k + 2][a_line] = part.z;
        a[a_k + 3][a_line] = part.w;
        *reinterpret_cast<float4*>(&b[b_line][b_col]) = load_quad<kWidth>(
            from_b + static_cast<size_t>(k0) * N,
            k0 + b_line < K ? N - first_col - b_col : 0);
        __syncthreads();  // both tiles are loaded before any thread reads them

#pragma unroll
        for (int k = 0; k < kDepth; ++k) {
            float left[kOut], above[kOut];
            read_halves(left, a[k], down);
            read_halves(above, b[k], across);
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
        const int row = first_row + i / 4 * kHalf + down * 4 + i % 4;
        if (row < M) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const int col = first_col + half * kHalf + across * 4;
                const float* s = sum[i] + half * 4;
                store_quad<kWidth>(
                    C + static_cast<size_t>(row) * N + col, {s[0], s[1], s[2], s[3]},
                    N - col);
            }
        }
    }
}
