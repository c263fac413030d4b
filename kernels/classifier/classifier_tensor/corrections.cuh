// Products of three parts: high parts in TF32, and two corrections, which are below
// 2^-10 of that and need fewer bits, in bfloat16. It has the exponents of a float, so
// nothing is scaled, and an instruction takes 16 inputs, not 8.
//
// A lane's fragments in TF32 have inputs t and t + 4 of eight, where t is lane % 4;
// those in bfloat16 have neighbours. So the lines of the input in bfloat16 lie in the
// order in which a lane has the weights: 0, 4, 1, 5, 2, 6, 3, 7 of each eight.
#pragma once

#include "../../common/hopper/tma.cuh"
#include "../../common/hopper/wgmma_narrow.cuh"
#include "../../common/mma.cuh"

WGMMA(wgmma_bf16, 32, "k16.f32.bf16.bf16", ", 0, 0", ", 0")

constexpr int kBatch = 32;
constexpr int kDepth = 32;  // inputs of a slab: rows of 128 bytes

// The samples of a slab: as they come, and in bfloat16 rows of 32 high and 32 low parts
// whose 16-byte pieces are swizzled as the copy engine swizzles them.
template <int kCount> struct Slab {
    float whole[kCount * kDepth];  // then rounded up
    uint4 parts[kCount * 8];
};
using Samples = Slab<kBatch>;

// A float whose upper 19 bits are the nearest TF32 number: tensor cores cut off the
// rest. What is left for a low part is half of what cutting off the float leaves.
__device__ __forceinline__ unsigned round_up(float x)
{
    return __float_as_uint(x) + 0x1000u;
}
__device__ __forceinline__ float high_part(unsigned rounded)
{
    return __uint_as_float(rounded & 0xffffe000u);
}
// Two floats, rounded: the first is the lower half.
__device__ __forceinline__ unsigned pack_bf16(float first, float second)
{
    unsigned pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
    return pair;
}

// Splits eight inputs of a sample. A correction with the low part of a weight takes the
// whole input, one with a low part of the input the high part of a weight.
template <int kCount>
__device__ __forceinline__ void split_eight(
    Slab<kCount>& samples, int sample, int eight)
{
    float values[8], lows[8];
    float4* quads = reinterpret_cast<float4*>(samples.whole) + sample * 8;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        float4& quad = quads[(2 * eight + i) ^ sample % 8];
        reinterpret_cast<float4*>(values)[i] = quad;
        unsigned rounded[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            rounded[j] = round_up(values[4 * i + j]);
            lows[4 * i + j] = values[4 * i + j] - high_part(rounded[j]);
        }
        reinterpret_cast<uint4&>(quad) = reinterpret_cast<const uint4&>(rounded);
    }
    unsigned whole[4], low[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        whole[j] = pack_bf16(values[j], values[j + 4]);
        low[j] = pack_bf16(lows[j], lows[j + 4]);
    }
    uint4* row = samples.parts + sample * 8;
    row[eight ^ sample % 8] = make_uint4(whole[0], whole[1], whole[2], whole[3]);
    row[(4 + eight) ^ sample % 8] = make_uint4(low[0], low[1], low[2], low[3]);
}

// Sums of a lane. Products of 8 and of 16 inputs may not share registers in flight.
// Tensor cores cut off their sums, which does not matter for corrections.
struct Sums {
    float high[kBatch / 2], corrections[kBatch / 2];
};

// A lane's weights of a slab: rounded up, for products of 8 inputs, and high and low
// parts, for products of 16. `row` is the lane's for ldmatrix, `quad` the first or the
// second of eight.
struct Weights {
    unsigned rounded[kDepth / 8][4], high[kDepth / 16][4], low[kDepth / 16][4];
};
__device__ __forceinline__ void split_weights(Weights& to, const float* weights,
                                              int row, int quad)
{
#pragma unroll
    for (int s = 0; s < kDepth / 8; ++s) {
        load_matrices(to.rounded[s],
                      weights + row * kDepth + ((2 * s + quad) ^ row % 8) * 4);
    }
#pragma unroll
    for (int s = 0; s < kDepth / 8; ++s) {
        float tall[4], small[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const float value = __uint_as_float(to.rounded[s][j]);
            to.rounded[s][j] = round_up(value);
            tall[j] = high_part(to.rounded[s][j]);
            small[j] = value - tall[j];
        }
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            to.high[s / 2][s % 2 * 2 + j] = pack_bf16(tall[j], tall[j + 2]);
            to.low[s / 2][s % 2 * 2 + j] = pack_bf16(small[j], small[j + 2]);
        }
    }
}

// Adds the products of a warpgroup's 64 lines of weights with a slab of the samples.
// Sums begin anew where there is no `more`.
__device__ __forceinline__ void multiply_slab(
    Sums& sums, const float* weights, int row, int quad, const Samples& samples,
    bool more, bool more_corrections)
{
    Weights split;
    split_weights(split, weights, row, quad);
    const Descriptor tall = describe_rows_of_k(samples.whole);
    const Descriptor parts = describe_rows_of_k(samples.parts);
    wgmma_fence();
#pragma unroll
    for (int p = 0; p < kDepth / 16; ++p) {
        wgmma_bf16(sums.corrections, split.low[p], parts + 2 * p,
                   more_corrections || p > 0);
        wgmma_bf16(sums.corrections, split.high[p], parts + 4 + 2 * p, true);
    }
#pragma unroll
    for (int s = 0; s < kDepth / 8; ++s) {
        wgmma_tf32(sums.high, split.rounded[s], tall + 2 * s, more || s > 0);
    }
    wgmma_commit();
    wgmma_wait<0>();
}
