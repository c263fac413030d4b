// Idea: let every thread of the block load weights.
// From the rung before: only that all threads share thread 0's loop over the weights,
// one weight per thread and round.
// Requires: blocks of kSide^2 threads, at least a warp; kSide divides n; shared memory
// for the weights of one input map; outputs that convlayer_clear has set to zero.
#include "../convlayer/clear.cuh"
#include "chunks.cuh"

template <int kSize, int kSide>
__global__ void __launch_bounds__(kSide* kSide)
    report_block_load(const int* __restrict__ input, const int* __restrict__ weights,
                      int* __restrict__ output, int n, int c_out)
{
    constexpr int kWide = kSide + kSize - 1, kTaps = kSize * kSize;
    __shared__ int piece[kWide][kWide];
    extern __shared__ int taps[];  // the weights of this input map, c_out * kTaps
    const int chunks = n / kSide * (n / kSide);
    const int map = blockIdx.x / chunks, chunk = blockIdx.x % chunks;
    const size_t plane = static_cast<size_t>(n) * n;
    for (int i = threadIdx.x; i < c_out * kTaps; i += kSide * kSide) {
        taps[i] = weights[static_cast<size_t>(map) * c_out * kTaps + i];
    }
    load_piece<kSide, kSize, kSide * kSide>(piece, input + map * plane, chunk, n);
    __syncthreads();  // piece and weights are complete before any thread reads them

    const int y = threadIdx.x / kSide, x = threadIdx.x % kSide;
    const int row = chunk / (n / kSide) * kSide + y,
              col = chunk % (n / kSide) * kSide + x;
    for (int out = 0; out < c_out; ++out) {
        atomicAdd(&output[out * plane + static_cast<size_t>(row) * n + col],
                  weighted<kSize>(piece, taps + out * kTaps, y, x));
    }
}
