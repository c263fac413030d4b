// Idea: load the next tiles from global memory while the block computes with these.
// From the rung before: loads go to registers first and to shared memory last; two
// pairs of tiles take turns.
// Requires: a block of kThreads threads; all arrays aligned to 16 bytes; kWidth = 4
// where n and k are multiples of 4, kWidth = 1 otherwise.
#include "../../common/quads.cuh"

constexpr int kTile = 128;
constexpr int kHalf = kTile / 2;
constexpr int kDepth = 16;
constexpr int kOut = 8;
constexpr int kAcross = kTile / kOut;
constexpr int kThreads = 256;
constexpr int kPitch = kTile + 4;
constexpr int kQuads = kTile * kDepth / 4 / kThreads;
static_assert(
    kThreads == kAcross * kAcross, "each thread computes kOut x kOut elements");
static_assert(
    kQuads * kThreads * 4 == kTile * kDepth,
    "all threads load the same number of quads");

// Reads eight floats for one thread: a quad from each half of the tile's row.
__device__ void read_halves(float (&into)[kOut], const float* row, int quad)
{
    *reinterpret_cast<float4*>(into) = *reinterpret_cast<const float4*>(row + quad * 4);
    *reinterpret_cast<float4*>(into + 4) =
        *reinterpret_cast<const float4*>(row + kHalf + quad * 4);
}

template <int kWidth>
__global__ void __launch_bounds__(kThreads, 2) matmul_double_buffered(
    const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C,
    int M, int N, int K)
{
    __shared__ __align__(16) float a[2][kDepth][kPitch];
    __shared__ __align__(16) float b[2][kDepth][kTile];
    const int first_row = blockIdx.y * kTile, first_col = blockIdx.x * kTile;
    const int down = threadIdx.x / kAcross, across = threadIdx.x % kAcross;
    float4 next_a[kQuads], next_b[kQuads];
    const auto fetch = [&](int k0) {
#pragma unroll
        for (int q = 0; q < kQuads; ++q) {
            const int i = q * kThreads + threadIdx.x;
            const int a_line = first_row + i / (kDepth / 4),
                      a_k = k0 + i % (kDepth / 4) * 4;
            const int b_line = k0 + i / (kTile / 4),
                      b_col = first_col + i % (kTile / 4) * 4;
            next_a[q] = load_quad<kWidth>(
                A + static_cast<size_t>(a_line) * K + a_k, a_line < M ? K - a_k : 0);
            next_b[q] = load_quad<kWidth>(
                B + static_cast<size_t>(b_line) * N + b_col,
                b_line < K ? N - b_col : 0);
        }
    };
    const auto put = [&](int turn) {
#pragma unroll
        for (int q = 0; q < kQuads; ++q) {
            const int i = q * kThreads + threadIdx.x;
            const int a_line = i / (kDepth / 4), a_k = i % (kDepth / 4) * 4;
            a[turn][a_k + 0][a_line] = next_a[q].x;
            a[turn][a_k + 1][a_line] = next_a[q].y;
            a[turn][a_k + 2][a_line] = next_a[q].z;
            a[turn][a_k + 3][a_line] = next_a[q].w;
            *reinterpret_cast<float4*>(&b[turn][i / (kTile / 4)][i % (kTile / 4) * 4]) =
                next_b[q];
        }
    };
    float sum[kOut][kOut] = {};
    fetch(0);
    put(0);
    __syncthreads();  // the first tiles are loaded before any thread reads them
    for (int k0 = 0, turn = 0; k0 < K; k0 += kDepth, turn ^= 1) {
        const bool more = k0 + kDepth < K;
        if (more) fetch(k0 + kDepth);
#pragma unroll
        for (int k = 0; k < kDepth; ++k) {
            float left[kOut], above[kOut];
            read_halves(left, a[turn][k], down);
            read_halves(above, b[turn][k], across);
#pragma unroll
            for (int i = 0; i < kOut; ++i) {
#pragma unroll
                for (int j = 0; j < kOut; ++j) {
                    sum[i][j] += left[i] * above[j];
                }
            }
        }
        if (more) {
            put(turn ^ 1);
            // The next tiles are loaded before any thread reads them, and all threads
            // have read the current tiles before the next iteration replaces them.
            __syncthreads();
        }
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
