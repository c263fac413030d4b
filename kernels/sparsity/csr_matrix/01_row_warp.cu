// Idea: a warp computes 32 columns of a row: for each element, a coalesced row of B.
// From the rung before: the first rung.
// Requires: blocks of kThreads threads.

constexpr int kThreads = 256;
constexpr int kWarp = 32;

extern "C" __global__ void __launch_bounds__(kThreads)
    csr_mm_row_warp(const int* __restrict__ offsets, const int* __restrict__ columns,
                    const float* __restrict__ values, const float* __restrict__ B,
                    float* __restrict__ C, int m, int n)
{
    const int row = blockIdx.y * (kThreads / kWarp) + threadIdx.x / kWarp;
    const int col = blockIdx.x * kWarp + threadIdx.x % kWarp;
    if (row >= m || col >= n) return;
    float sum = 0.0f;
    for (int i = offsets[row]; i < offsets[row + 1]; ++i)
        sum += values[i] * B[static_cast<size_t>(columns[i]) * n + col];
    C[static_cast<size_t>(row) * n + col] = sum;
}
