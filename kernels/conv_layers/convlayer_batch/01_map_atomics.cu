// Idea: conv1 of the course report, corrected, for several images at once.
// From the rung before: this is the first rung; the kernel is that of the ladder for
// one image, with the images along the grid's third axis.
// Requires: blocks of kThreads threads; outputs that convlayer_clear has set to zero.
#include "../convlayer/clear.cuh"

constexpr int kSide = 28;
constexpr int kThreads = 784;
static_assert(kThreads == kSide * kSide, "a thread for each element of the piece");

template <int kSize>
__global__ void __launch_bounds__(kThreads)
    convlayer_batch_map_atomics(const float* __restrict__ input,
                                const float* __restrict__ weights,
                                float* __restrict__ output, int n, int c_in, int c_out)
{
    constexpr int kHalo = kSize / 2;
    constexpr int kWide = kSide + kSize - 1;
    __shared__ float piece[kWide][kWide];
    const int across = (n + kSide - 1) / kSide;
    const int first_row = blockIdx.x / across * kSide,
              first_col = blockIdx.x % across * kSide;
    const int map = blockIdx.y;
    const size_t plane = static_cast<size_t>(n) * n, image = blockIdx.z;
    if (map >= c_in) return;  // for c_in = 0, the grid still has blocks
    const float* const from = input + (image * c_in + map) * plane;
    for (int i = threadIdx.x; i < kWide * kWide; i += kThreads) {
        const int row = first_row + i / kWide - kHalo,
                  col = first_col + i % kWide - kHalo;
        const bool inside = row >= 0 && row < n && col >= 0 && col < n;
        piece[i / kWide][i % kWide] =
            inside ? from[static_cast<size_t>(row) * n + col] : 0.0f;
    }
    __syncthreads();  // the piece is complete before any thread reads it

    const int y = threadIdx.x / kSide, x = threadIdx.x % kSide;
    const int row = first_row + y, col = first_col + x;
    if (row >= n || col >= n) return;
    float* const to =
        output + image * c_out * plane + static_cast<size_t>(row) * n + col;
    for (int out = 0; out < c_out; ++out) {
        const float* const taps =
            weights + (static_cast<size_t>(out) * c_in + map) * (kSize * kSize);
        float sum = 0.0f;
#pragma unroll
        for (int down = 0; down < kSize; ++down) {
#pragma unroll
            for (int right = 0; right < kSize; ++right) {
                sum += taps[down * kSize + right] * piece[y + down][x + right];
            }
        }
        atomicAdd(to + out * plane, sum);
    }
}
