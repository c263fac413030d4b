// Idea: if a block covers a row exactly, it needs neither a loop nor bounds checks.
// From the rung before: a row is one piece; kExact if the block covers it; the last
// steps of the sum add only as many values as there are warps.
// Requires: a block of kBlock threads; a grid of outputs and the batch; weights and
// input aligned to 16 bytes; kWidth = 4 where inputs is a multiple of 4, kWidth = 1
// otherwise; kExact only for rows of kBlock * kUnroll packs.
#include "../../common/warp.cuh"
#include "classifier.cuh"

// The sum of the block's values, in thread 0. All threads of the block must call it.
// The number of warps is a power of two; unlike in block_sum, the last steps add only
// as many values as there are warps.
template <int kBlock>
__device__ __forceinline__ float short_block_sum(float value)
{
    constexpr int kWarps = kBlock / kWarp;
    static_assert((kWarps & (kWarps - 1)) == 0,
                  "the last steps halve the number of warps");
    __shared__ float part[kWarps];
    value = warp_sum(value);
    if (threadIdx.x % kWarp == 0) part[threadIdx.x / kWarp] = value;
    __syncthreads();  // all warps have stored their sums before the first one adds them
    value = part[threadIdx.x % kWarps];
#pragma unroll
    for (int offset = kWarps / 2; offset > 0; offset /= 2) {
        value += __shfl_down_sync(kAllLanes, value, offset);
    }
    return value;
}

template <int kWidth, int kBlock, int kUnroll, bool kExact>
__global__ void __launch_bounds__(kBlock, 1)
    classifier_no_bounds(const float* __restrict__ weights,
                         const float* __restrict__ input, float* __restrict__ output,
                         int inputs, int outputs)
{
    using P = typename Pack<kWidth>::type;
    const int packs = kExact ? kBlock * kUnroll : inputs / kWidth;
    const P* mine =
        reinterpret_cast<const P*>(weights) + static_cast<size_t>(blockIdx.x) * packs;
    const P* values =
        reinterpret_cast<const P*>(input) + static_cast<size_t>(blockIdx.y) * packs;
    float sum = 0.0f;
#pragma unroll 1  // the packs of one round are unrolled, the rounds are not
    for (int first = threadIdx.x; kExact || first < packs; first += kBlock * kUnroll) {
        P weight[kUnroll], value[kUnroll];
#pragma unroll
        for (int u = 0; u < kUnroll; ++u) {
            const int i = first + u * kBlock;
            weight[u] = kExact || i < packs ? mine[i] : P{};
        }
#pragma unroll
        for (int u = 0; u < kUnroll; ++u) {
            const int i = first + u * kBlock;
            value[u] = kExact || i < packs ? values[i] : P{};
        }
#pragma unroll
        for (int u = 0; u < kUnroll; ++u) {
            sum = multiply_add(weight[u], value[u], sum);
        }
        if constexpr (kExact) break;
    }
    sum = short_block_sum<kBlock>(sum);
    if (threadIdx.x == 0)
        output[static_cast<size_t>(blockIdx.y) * outputs + blockIdx.x] = sum;
}
