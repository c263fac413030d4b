// Idea: split each row over blocks, so that a few long rows keep all SMs busy.
// From the rung before: plain loads; a block sums one piece of a row and stores the sum
// for the second pass.
// Requires: a block of kBlock threads; a grid of outputs, pieces and the batch; weights
// and input aligned to 16 bytes; kWidth = 4 where inputs is a multiple of 4, kWidth = 1
// otherwise. With one piece per row, `sums` is the output.
#include "../../common/warp.cuh"
#include "classifier.cuh"

template <int kWidth, int kBlock, int kUnroll>
__global__ void __launch_bounds__(kBlock, 2)
    classifier_split_k(const float* __restrict__ weights,
                       const float* __restrict__ input, float* __restrict__ sums,
                       int inputs, int outputs, int packs_per_piece)
{
    using P = typename Pack<kWidth>::type;
    const int packs = inputs / kWidth;
    const int begin = blockIdx.y * packs_per_piece;
    const int end = min(begin + packs_per_piece, packs);
    const P* mine =
        reinterpret_cast<const P*>(weights) + static_cast<size_t>(blockIdx.x) * packs;
    const P* values =
        reinterpret_cast<const P*>(input) + static_cast<size_t>(blockIdx.z) * packs;
    float sum = 0.0f;
#pragma unroll 1  // the packs of one round are unrolled, the rounds are not
    for (int first = begin + threadIdx.x; first < end; first += kBlock * kUnroll) {
        P weight[kUnroll], value[kUnroll];
#pragma unroll
        for (int u = 0; u < kUnroll; ++u) {
            const int i = first + u * kBlock;
            weight[u] = i < end ? mine[i] : P{};
        }
#pragma unroll
        for (int u = 0; u < kUnroll; ++u) {
            const int i = first + u * kBlock;
            value[u] = i < end ? values[i] : P{};
        }
#pragma unroll
        for (int u = 0; u < kUnroll; ++u) {
            sum = multiply_add(weight[u], value[u], sum);
        }
    }
    sum = block_sum<kBlock>(sum);
    if (threadIdx.x == 0) {
        sums[(static_cast<size_t>(blockIdx.z) * outputs + blockIdx.x) * gridDim.y +
             blockIdx.y] = sum;
    }
}

// One warp per output adds up the sums of its pieces.
constexpr int kSecond = 128;

__global__ void __launch_bounds__(kSecond)
    classifier_split_k_sum(const float* __restrict__ sums, float* __restrict__ output,
                           size_t n, int pieces)
{
    const int lane = threadIdx.x % kWarp;
    const size_t at =
        static_cast<size_t>(blockIdx.x) * (kSecond / kWarp) + threadIdx.x / kWarp;
    if (at >= n) return;
    float sum = 0.0f;
    for (int piece = lane; piece < pieces; piece += kWarp) {
        sum += sums[at * pieces + piece];
    }
    sum = warp_sum(sum);
    if (lane == 0) output[at] = sum;
}
