// Each block smooths a piece of 2048 values: every value becomes the mean of itself and
// its two neighbours in the piece. Keep the results, but let 16 blocks fit on an SM.
constexpr int kPiece = 2048;
constexpr int kThreads = 128;

__global__ void smooth(
    const float* __restrict__ source, float* __restrict__ target, int n)
{
    __shared__ float before[kPiece];
    __shared__ float after[kPiece];
    const int first = blockIdx.x * kPiece;
    const int length = min(kPiece, n - first);
    for (int i = threadIdx.x; i < length; i += kThreads) {
        before[i] = source[first + i];
    }
    __syncthreads();  // the piece is loaded before a neighbour reads it
    for (int i = threadIdx.x; i < length; i += kThreads) {
        const float left = before[max(i - 1, 0)];
        const float right = before[min(i + 1, length - 1)];
        after[i] = (left + before[i] + right) / 3.0f;
    }
    __syncthreads();  // all means are written before any is stored
    for (int i = threadIdx.x; i < length; i += kThreads) {
        target[first + i] = after[i];
    }
}
