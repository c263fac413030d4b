// Idea: the block keeps a chunk of the input in shared memory for all its rows.
// From the rung before: each input is loaded from global memory once per block instead
// of once per warp.
// Requires: a block of kThreads threads; a grid of outputs and the batch; weights and
// input aligned to 16 bytes; kWidth = 4 where inputs is a multiple of 4, kWidth = 1
// otherwise.
#include "../../common/warp.cuh"
#include "classifier.cuh"

constexpr int kThreads = 256;
constexpr int kChunk = 4096;

template <int kWidth>
__global__ void __launch_bounds__(kThreads)
    classifier_shared_input(const float* __restrict__ weights,
                            const float* __restrict__ input, float* __restrict__ output,
                            int inputs, int outputs)
{
    using P = typename Pack<kWidth>::type;
    constexpr int kPacks = kChunk / kWidth;
    __shared__ P chunk[kPacks];
    const int lane = threadIdx.x % kWarp;
    const int row = blockIdx.x * (kThreads / kWarp) + threadIdx.x / kWarp;
    const int packs = inputs / kWidth;
    const P* mine = reinterpret_cast<const P*>(weights) +
                    static_cast<size_t>(min(row, outputs - 1)) * packs;
    const P* values =
        reinterpret_cast<const P*>(input) + static_cast<size_t>(blockIdx.y) * packs;
    float sum = 0.0f;
    for (int first = 0; first < packs; first += kPacks) {
        const int here = min(kPacks, packs - first);
        __syncthreads();  // all reads of the chunk are done before it is replaced
        for (int i = threadIdx.x; i < here; i += kThreads) {
            chunk[i] = values[first + i];
        }
        __syncthreads();  // the chunk is complete before any warp reads it
        for (int i = lane; i < here; i += kWarp) {
            sum = multiply_add(mine[first + i], chunk[i], sum);
        }
    }
    sum = warp_sum(sum);
    if (lane == 0 && row < outputs)
        output[static_cast<size_t>(blockIdx.y) * outputs + row] = sum;
}
