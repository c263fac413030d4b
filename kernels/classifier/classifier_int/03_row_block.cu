// Idea: one block per output; a thread loads kUnroll packs before it uses the first.
// From the rung before: launch_bounds of the float32 ladder, for integers: each output
// has one owner, so there are no atomics.
// Requires: a block of kBlock threads; a grid of outputs and the batch; weights and
// input aligned to 16 bytes; kWidth = 4 where inputs is a multiple of 4, kWidth = 1
// otherwise.
#include "../../common/warp.cuh"

template <int kWidth>
struct Pack;
template <>
struct Pack<1> {
    using type = unsigned;
};
template <>
struct Pack<4> {
    using type = uint4;
};

__device__ __forceinline__ unsigned multiply_add(unsigned weight, unsigned value,
                                                 unsigned sum)
{
    return weight * value + sum;
}

__device__ __forceinline__ unsigned multiply_add(uint4 weight, uint4 value,
                                                 unsigned sum)
{
    return weight.x * value.x + weight.y * value.y + weight.z * value.z +
           weight.w * value.w + sum;
}

template <int kWidth, int kBlock, int kUnroll>
__global__ void __launch_bounds__(kBlock, 2)
    classifier_int_row_block(const unsigned* __restrict__ weights,
                             const unsigned* __restrict__ input,
                             unsigned* __restrict__ output, int inputs, int outputs)
{
    static_assert(kBlock % kWarp == 0 && kBlock <= kWarp * kWarp,
                  "whole warps, and one warp can add up their sums");
    // Not block_sum: the compiler generates different machine code with it here.
    __shared__ unsigned part[kBlock / kWarp];
    using P = typename Pack<kWidth>::type;
    const int packs = inputs / kWidth;
    const P* mine =
        reinterpret_cast<const P*>(weights) + static_cast<size_t>(blockIdx.x) * packs;
    const P* values =
        reinterpret_cast<const P*>(input) + static_cast<size_t>(blockIdx.y) * packs;
    unsigned sum = 0;
#pragma unroll 1  // the packs of one round are unrolled, the rounds are not
    for (int first = threadIdx.x; first < packs; first += kBlock * kUnroll) {
        P weight[kUnroll], value[kUnroll];
#pragma unroll
        for (int u = 0; u < kUnroll; ++u) {
            const int i = first + u * kBlock;
            weight[u] = i < packs ? mine[i] : P{};
        }
#pragma unroll
        for (int u = 0; u < kUnroll; ++u) {
            const int i = first + u * kBlock;
            value[u] = i < packs ? values[i] : P{};
        }
#pragma unroll
        for (int u = 0; u < kUnroll; ++u) {
            sum = multiply_add(weight[u], value[u], sum);
        }
    }
    sum = warp_sum(sum);
    if (threadIdx.x % kWarp == 0) part[threadIdx.x / kWarp] = sum;
    __syncthreads();  // all warps have stored their sums before the first one adds them
    if (threadIdx.x < kWarp) {
        sum = warp_sum(threadIdx.x < kBlock / kWarp ? part[threadIdx.x] : 0);
        if (threadIdx.x == 0)
            output[static_cast<size_t>(blockIdx.y) * outputs + blockIdx.x] = sum;
    }
}
