// Each block smooths a piece of 2048 values: every value becomes the mean of itself and
// its two neighbours in the piece. A mean goes straight to global memory, because no
// other thread needs it.
constexpr int kPiece = 2048;
constexpr int kThreads = 128;

__global__ void smooth(
    const float* __restrict__ source, float* __restrict__ target, int n)
{
    __shared__ float before[kPiece];
    const int first = blockIdx.x * kPiece;
    const int length = min(kPiece, n - first);
    for (int i = threadIdx.x; i < length; i += kThreads) {
        before[i] = source[first + i];
    }
    __syncthreads();  // the piece is loaded before a neighbour reads it
    for (int i = threadIdx.x; i < length; i += kThreads) {
        const float left = before[max(i - 1, 0)];
        const float right = before[min(i + 1, length - 1)];
        target[first + i] = (left + before[i] + right) / 3.0f;
    }
}
