// Idea: conv2 in the layouts of the course report: one block per pair of maps.
// From the rung before: blocks instead of the loop over output maps; thread 0 loads the
// nine weights. Neighbouring blocks read neighbouring weights.
// Requires: blocks of kSide^2 threads, at least a warp; kSide divides n; outputs that
// convlayer_clear has set to zero.
#include "../convlayer/clear.cuh"
#include "chunks.cuh"

template <int kSize, int kSide>
__global__ void __launch_bounds__(kSide* kSide)
    report_pairs(const int* __restrict__ input, const int* __restrict__ weights,
                 int* __restrict__ output, int n, int c_out)
{
    constexpr int kWide = kSide + kSize - 1, kTaps = kSize * kSize;
    __shared__ int piece[kWide][kWide];
    __shared__ int taps[kTaps];
    const int map = blockIdx.z, out = blockIdx.x, chunk = blockIdx.y;
    const size_t plane = static_cast<size_t>(n) * n;
    if (threadIdx.x == 0) {
        const size_t pair = static_cast<size_t>(map) * c_out + out;
        for (int i = 0; i < kTaps; ++i) {
            taps[i] = weights[pair * kTaps + i];
        }
    }
    load_piece<kSide, kSize, kSide * kSide>(piece, input + map * plane, chunk, n);
    __syncthreads();  // piece and weights are complete before any thread reads them

    const int y = threadIdx.x / kSide, x = threadIdx.x % kSide;
    const int row = chunk / (n / kSide) * kSide + y,
              col = chunk % (n / kSide) * kSide + x;
    atomicAdd(&output[out * plane + static_cast<size_t>(row) * n + col],
              weighted<kSize>(piece, taps, y, x));
}
