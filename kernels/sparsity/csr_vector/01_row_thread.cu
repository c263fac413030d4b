// Idea: one thread adds up each row.
// From the rung before: the first rung.
// Requires: blocks of kThreads threads.

constexpr int kThreads = 256;

extern "C" __global__ void __launch_bounds__(kThreads)
    csr_row_thread(const int* __restrict__ offsets, const int* __restrict__ columns,
                   const float* __restrict__ values, const float* __restrict__ x,
                   float* __restrict__ y, int m)
{
    const int row = blockIdx.x * kThreads + threadIdx.x;
    if (row >= m) return;
    float sum = 0.0f;
    for (int i = offsets[row]; i < offsets[row + 1]; ++i)
        sum += values[i] * x[columns[i]];
    y[row] = sum;
}
