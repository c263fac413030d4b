// Correct, but one float at a time. A row may start anywhere: after cols floats, after
// 2 * cols floats, and so on. Copy the floats before the first multiple of 16 bytes one
// by one, then as many float4s as fit, then the rest.
constexpr int kWidth = 4;

__global__ void rows_copy(
    const float* __restrict__ source, float* __restrict__ target, int cols)
{
    const size_t row = static_cast<size_t>(blockIdx.x) * cols;  // one block per row
    for (int i = threadIdx.x; i < cols; i += blockDim.x) {
        target[row + i] = source[row + i];
    }
}
