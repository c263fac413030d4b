// Idea: one thread per output reads along its row and keeps the sum in a register.
// From the rung before: each output has one owner: no atomics, no zeroing, one store.
// Requires: a block of kThreads threads; a grid of outputs and the batch.
constexpr int kThreads = 128;

__global__ void __launch_bounds__(kThreads)
    classifier_row_thread(const float* __restrict__ weights,
                          const float* __restrict__ input, float* __restrict__ output,
                          int inputs, int outputs)
{
    const int row = blockIdx.x * kThreads + threadIdx.x;
    if (row >= outputs) return;
    const float* mine = weights + static_cast<size_t>(row) * inputs;
    const float* values = input + static_cast<size_t>(blockIdx.y) * inputs;
    float sum = 0.0f;
    for (int i = 0; i < inputs; ++i) {
        sum = fmaf(mine[i], values[i], sum);
    }
    output[static_cast<size_t>(blockIdx.y) * outputs + row] = sum;
}
