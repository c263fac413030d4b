// Idea: one block per pair of an input map and an output map: many small blocks.
// From the rung before: conv2 of the course report: blocks instead of the loop over
// output maps, so each loaded input serves only one output map.
// Requires: blocks of kThreads threads; outputs that convlayer_clear has set to zero.
#include "../convlayer/clear.cuh"

constexpr int kSide = 14;
constexpr int kThreads = 196;
static_assert(kThreads == kSide * kSide, "a thread for each element of the piece");

template <typename T, int kSize>
__global__ void __launch_bounds__(kThreads)
    convlayer_pair_atomics(const T* __restrict__ input, const T* __restrict__ weights,
                           T* __restrict__ output, int n, int c_in, int c_out)
{
    constexpr int kHalo = kSize / 2;
    constexpr int kWide = kSide + kSize - 1;
    constexpr int kTaps = kSize * kSize;
    __shared__ T piece[kWide][kWide];
    __shared__ T taps[kTaps];
    const int across = (n + kSide - 1) / kSide;
    const int tile = blockIdx.x % (across * across),
              map = blockIdx.x / (across * across), out = blockIdx.y;
    const int first_row = tile / across * kSide, first_col = tile % across * kSide;
    const size_t plane = static_cast<size_t>(n) * n;
    if (map >= c_in) return;  // for c_in = 0, the grid still has blocks
    for (int i = threadIdx.x; i < kWide * kWide; i += kThreads) {
        const int row = first_row + i / kWide - kHalo,
                  col = first_col + i % kWide - kHalo;
        const bool inside = row >= 0 && row < n && col >= 0 && col < n;
        piece[i / kWide][i % kWide] =
            inside ? input[map * plane + static_cast<size_t>(row) * n + col] : T(0);
    }
    for (int i = threadIdx.x; i < kTaps; i += kThreads) {
        taps[i] = weights[(static_cast<size_t>(out) * c_in + map) * kTaps + i];
    }
    __syncthreads();  // piece and weights are complete before any thread reads them

    const int y = threadIdx.x / kSide, x = threadIdx.x % kSide;
    const int row = first_row + y, col = first_col + x;
    if (row >= n || col >= n) return;
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
