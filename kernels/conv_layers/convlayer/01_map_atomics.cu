// Idea: a block adds the contribution of a piece of an input map to every output map.
// From the rung before: this is the first rung: conv1 of the course report, but with
// atomics instead of its plain +=.
// Requires: blocks of kThreads threads; outputs that convlayer_clear has set to zero.
#include "../convlayer/clear.cuh"

constexpr int kSide = 28;
constexpr int kThreads = 784;
static_assert(kThreads == kSide * kSide, "a thread for each element of the piece");

template <typename T, int kSize>
__global__ void __launch_bounds__(kThreads)
    convlayer_map_atomics(const T* __restrict__ input, const T* __restrict__ weights,
                          T* __restrict__ output, int n, int c_in, int c_out)
{
    constexpr int kHalo = kSize / 2;
    constexpr int kWide = kSide + kSize - 1;
    __shared__ T piece[kWide][kWide];
    const int across = (n + kSide - 1) / kSide;
    const int first_row = blockIdx.x / across * kSide,
              first_col = blockIdx.x % across * kSide;
    const int map = blockIdx.y;
    const size_t plane = static_cast<size_t>(n) * n;
    if (map >= c_in) return;  // for c_in = 0, the grid still has blocks
    for (int i = threadIdx.x; i < kWide * kWide; i += kThreads) {
        const int row = first_row + i / kWide - kHalo,
                  col = first_col + i % kWide - kHalo;
        const bool inside = row >= 0 && row < n && col >= 0 && col < n;
        piece[i / kWide][i % kWide] =
            inside ? input[map * plane + static_cast<size_t>(row) * n + col] : T(0);
    }
    __syncthreads();  // the piece is complete before any thread reads it

    const int y = threadIdx.x / kSide, x = threadIdx.x % kSide;
    const int row = first_row + y, col = first_col + x;
    if (row >= n || col >= n) return;
    for (int out = 0; out < c_out; ++out) {
        const T* taps =
            weights + (static_cast<size_t>(out) * c_in + map) * (kSize * kSize);
        T sum = 0;
#pragma unroll
        for (int down = 0; down < kSize; ++down) {
#pragma unroll
            for (int right = 0; right < kSize; ++right) {
                sum += taps[down * kSize + right] * piece[y + down][x + right];
            }
        }
        atomicAdd(&output[out * plane + static_cast<size_t>(row) * n + col], sum);
    }
}
