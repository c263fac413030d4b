// Both arrays start at a multiple of 16 bytes, so the number of floats before a row
// gives the row's misalignment.
constexpr int kWidth = 4;

__global__ void rows_copy(
    const float* __restrict__ source, float* __restrict__ target, int cols)
{
    const size_t row = static_cast<size_t>(blockIdx.x) * cols;  // one block per row
    const int head = min(cols, static_cast<int>((kWidth - row % kWidth) % kWidth));
    const int quads = (cols - head) / kWidth;
    const int tail = head + quads * kWidth;
    const float* from = source + row;
    float* to = target + row;
    for (int i = threadIdx.x; i < quads; i += blockDim.x) {
        reinterpret_cast<float4*>(to + head)[i] =
            reinterpret_cast<const float4*>(from + head)[i];
    }
    if (threadIdx.x < head) {
        to[threadIdx.x] = from[threadIdx.x];
    }
    if (tail + threadIdx.x < cols) {
        to[tail + threadIdx.x] = from[tail + threadIdx.x];
    }
}
