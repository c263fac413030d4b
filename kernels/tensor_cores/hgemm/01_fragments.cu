// Idea: a warp multiplies 16 x 16 by 16 x 8 halves with one instruction, mma.sync.
// From the rung before: this is the first rung.
// Requires: blocks of kThreads threads; sm_80.
#include "../../common/mma.cuh"

using Half = unsigned short;  // the bits of a half are only moved

constexpr int kThreads = 128;
constexpr int kRows = 16, kCols = 8, kSteps = 16;  // what one instruction multiplies

// Packs two neighbours in a column (`down`) or in a row of a matrix into a register;
// elements outside the matrix are zero.
__device__ __forceinline__ unsigned pair(
    const Half* __restrict__ from, int rows, int cols, int row, int col, bool down)
{
    const size_t at = static_cast<size_t>(row) * cols + col;
    const bool first = row < rows && col < cols;
    const bool second = first && (down ? row + 1 < rows : col + 1 < cols);
    const unsigned low = first ? from[at] : 0;
    const unsigned high = second ? from[at + (down ? cols : 1)] : 0;
    return low | high << 16;
}

__global__ void __launch_bounds__(kThreads)
    hgemm_fragments(const Half* __restrict__ A, const Half* __restrict__ B,
                    float* __restrict__ C, int M, int N, int K)
{
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int row = blockIdx.y * kRows + lane / 4;
    const int col = (blockIdx.x * kThreads / 32 + warp) * kCols;
    float d[4] = {};
    for (int k0 = 0; k0 < K; k0 += kSteps) {
        const int k = k0 + lane % 4 * 2;
        const unsigned a[4] = {
            pair(A, M, K, row, k, false), pair(A, M, K, row + 8, k, false),
            pair(A, M, K, row, k + 8, false), pair(A, M, K, row + 8, k + 8, false)};
        const int b_col = col + lane / 4;
        mma_f16(d, a, pair(B, K, N, k, b_col, true), pair(B, K, N, k + 8, b_col, true));
    }
    for (int i = 0; i < 4; ++i) {
        const int y = row + i / 2 * 8, x = col + lane % 4 * 2 + i % 2;
        if (y < M && x < N) C[static_cast<size_t>(y) * N + x] = d[i];
    }
}
