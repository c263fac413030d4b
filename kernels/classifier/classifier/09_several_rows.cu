// Idea: a warp takes kWarpRows rows at once: a pack of the input serves them all.
// From the rung before: no shared memory; kWarpRows loads of weights in flight for one
// load of the input.
// Requires: a block of kThreads threads; a grid of kWarpRows outputs per warp x batch;
// weights and input aligned to 16 bytes; kWidth = 4 where inputs is a multiple of 4,
// kWidth = 1 otherwise.
#include "../../common/warp.cuh"
#include "classifier.cuh"

constexpr int kThreads = 128;
constexpr int kWarpRows = 4;

template <int kWidth>
__global__ void __launch_bounds__(kThreads)
    classifier_several_rows(const float* __restrict__ weights,
                            const float* __restrict__ input, float* __restrict__ output,
                            int inputs, int outputs)
{
    using P = typename Pack<kWidth>::type;
    const int lane = threadIdx.x % kWarp;
    const int first =
        (blockIdx.x * (kThreads / kWarp) + threadIdx.x / kWarp) * kWarpRows;
    const int packs = inputs / kWidth;
    const P* values =
        reinterpret_cast<const P*>(input) + static_cast<size_t>(blockIdx.y) * packs;
    const P* mine[kWarpRows];
    float sum[kWarpRows] = {};
#pragma unroll
    for (int r = 0; r < kWarpRows; ++r) {
        // Past the end, the last row is read again; its sum is not stored.
        mine[r] = reinterpret_cast<const P*>(weights) +
                  static_cast<size_t>(min(first + r, outputs - 1)) * packs;
    }
    for (int i = lane; i < packs; i += kWarp) {
        const P value = values[i];
#pragma unroll
        for (int r = 0; r < kWarpRows; ++r) {
            sum[r] = multiply_add(mine[r][i], value, sum[r]);
        }
    }
#pragma unroll
    for (int r = 0; r < kWarpRows; ++r) {
        sum[r] = warp_sum(sum[r]);
        if (lane == 0 && first + r < outputs) {
            output[static_cast<size_t>(blockIdx.y) * outputs + first + r] = sum[r];
        }
    }
}
