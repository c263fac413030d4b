// Idea: a block loads its inputs and a halo on both sides into shared memory.
// From the rung before: the neighbours come from the tile; only the load checks the
// ends of the array.
// Requires: a block of kThreads threads.
#include "../../common/stencil_weights.cuh"

constexpr int kThreads = 256;

template <int kRadius>
__global__ void __launch_bounds__(kThreads)
    stencil1d_tiled(const float* __restrict__ source, float* __restrict__ target, int n)
{
    constexpr int kWide = kThreads + 2 * kRadius;
    __shared__ float tile[kWide];
    const int first = blockIdx.x * kThreads;
    // The tile is wider than the block, so the load is a loop; its last iteration loads
    // the rest of the halo.
#pragma unroll
    for (int start = 0; start < kWide; start += kThreads) {
        const int i = start + threadIdx.x;
        const int at = first - kRadius + i;
        if (i < kWide) {
            tile[i] = at >= 0 && at < n ? source[at] : 0.0f;
        }
    }
    __syncthreads();  // tile and halo are loaded before any thread reads them

    float sum = 0.0f;
#pragma unroll
    for (int offset = -kRadius; offset <= kRadius; ++offset) {
        sum += weight(offset) * tile[threadIdx.x + kRadius + offset];
    }
    if (first + static_cast<int>(threadIdx.x) < n) {
        target[first + threadIdx.x] = sum;
    }
}
