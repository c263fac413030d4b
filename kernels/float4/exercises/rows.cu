// Right, but one float at a time. A row may begin anywhere: after cols floats, after 2 * cols floats, and so on.
// Copy what lies before the first multiple of 16 bytes one by one, then quads, then what is left.
constexpr int kWidth = 4;

__global__ void rows_copy(const float* __restrict__ source, float* __restrict__ target, int cols)
{
    const size_t row = static_cast<size_t>(blockIdx.x) * cols;  // one block per row
    for (int i = threadIdx.x; i < cols; i += blockDim.x) {
        target[row + i] = source[row + i];
    }
}
