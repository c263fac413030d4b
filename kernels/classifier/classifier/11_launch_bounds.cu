// Idea: leave the compiler enough registers to issue all loads before the first use.
// From the rung before: a 2 in __launch_bounds__: two blocks per SM. Without it, ptxas
// saves registers and loads only a few packs at a time.
// Requires: a block of kBlock threads; a grid of outputs and the batch; weights and
// input aligned to 16 bytes; kWidth = 4 where inputs is a multiple of 4, kWidth = 1
// otherwise.
#include "../../common/warp.cuh"
#include "classifier.cuh"

template <int kWidth, int kBlock, int kUnroll>
__global__ void __launch_bounds__(kBlock, 2)
    classifier_launch_bounds(const float* __restrict__ weights,
                             const float* __restrict__ input,
                             float* __restrict__ output, int inputs, int outputs)
{
    using P = typename Pack<kWidth>::type;
    const int packs = inputs / kWidth;
    const P* mine =
        reinterpret_cast<const P*>(weights) + static_cast<size_t>(blockIdx.x) * packs;
    const P* values =
        reinterpret_cast<const P*>(input) + static_cast<size_t>(blockIdx.y) * packs;
    float sum = 0.0f;
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
    sum = block_sum<kBlock>(sum);
    if (threadIdx.x == 0)
        output[static_cast<size_t>(blockIdx.y) * outputs + blockIdx.x] = sum;
}
