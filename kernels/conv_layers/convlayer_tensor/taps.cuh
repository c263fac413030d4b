// Halves of weights in the order in which products read them, for 64 output maps and a
// step of 16 input maps.
#pragma once

#include "../../common/async_copy.cuh"
#include "../../common/warp.cuh"
#include "halves.cuh"

constexpr int kOuts = 64;
constexpr int kDepth = 16;  // input maps of a step
constexpr int kTaps = 9;
constexpr int kEights = kDepth / 8;
constexpr int kOutsAtOnce = 8;  // output maps whose eights are contiguous

// Halves of 8 input maps of a pixel, or of a tap and an output map, in the order 0, 4,
// 1, 5, 2, 6, 3, 7.
using Eight = uint4;
// The halves of a step's weights for a block's output maps, ordered by kOutsAtOnce
// output maps, eight input maps, tap, part and output map.
template <int kParts> struct Taps {
    Eight eights[kOuts / kOutsAtOnce][kEights][kTaps][kParts][kOutsAtOnce];
};

// The number of eights of input maps, kEights for each step.
__device__ __forceinline__ int eights_of(int c_in)
{
    return (c_in + kDepth - 1) / kDepth * kEights;
}

// Makes halves of weights. A unit is 8 output and 8 input maps, the work of a warp;
// units cover whole steps and whole groups of output maps.
template <int kParts, int kBlock, int kWidth>
__device__ __forceinline__ void make_taps(const float* __restrict__ weights,
                                          Taps<kParts>* __restrict__ taps, int c_in,
                                          int c_out, int block)
{
    constexpr int kWarps = kBlock / kWarp;
    constexpr int kRow = 8 * kTaps;  // weights of an output map and of 8 input maps
    // With this pitch, the weights of 8 output maps x 4 input maps lie in 32 banks.
    constexpr int kPitch = kRow + 4;
    __shared__ __align__(16) float shared[kWarps][kOutsAtOnce * kPitch];
    const int eights = eights_of(c_in);
    const int lane = threadIdx.x % kWarp;
    const int unit = block * kWarps + threadIdx.x / kWarp;
    const int outs = unit / eights;
    const int eight = unit % eights;
    if (outs * kOutsAtOnce >= (c_out + kOuts - 1) / kOuts * kOuts) return;
    float* mine = shared[threadIdx.x / kWarp] + lane / 4 * kPitch;
    const int out = outs * kOutsAtOnce + lane / 4;
    const int number = (c_in - eight * 8) * kTaps;
    const float* from =
        weights + (static_cast<size_t>(out) * c_in + eight * 8) * kTaps;
    constexpr int kPacks = kRow / kWidth;  // of a row; four lanes copy it
#pragma unroll(kWidth == 4 ? (kPacks + 3) / 4 : 1)
    for (int j = 0; j < kPacks; j += 4) {
        const int pack = j + lane % 4;
        if (pack < kPacks) {
            copy_async<kWidth>(mine + pack * kWidth,
                               out < c_out ? from + pack * kWidth : weights,
                               out < c_out && pack * kWidth < number);
        }
    }
    wait_for_copies();
    __syncwarp();  // the warp's weights have arrived
    constexpr int kOctets = kOuts / kOutsAtOnce;
    Taps<kParts>& step = taps[outs / kOctets * (eights / kEights) + eight / kEights];
    unsigned* to =
        reinterpret_cast<unsigned*>(step.eights[outs % kOctets][eight % kEights]) +
        lane;
    const float* row = mine + lane % 4 * kTaps;
#pragma unroll
    for (int tap = 0; tap < kTaps; ++tap) {
        unsigned parts[kParts];
        split_pair<kParts>(parts, row[tap], row[4 * kTaps + tap]);
#pragma unroll
        for (int p = 0; p < kParts; ++p) to[(tap * kParts + p) * kWarp] = parts[p];
    }
}

// Converts 8 input maps of a pixel to an eight for each part.
template <int kParts>
__device__ __forceinline__ void make_eights(Eight (&eights)[kParts],
                                            const float (&value)[8])
{
    unsigned pair[4][kParts];
#pragma unroll
    for (int p = 0; p < 4; ++p) split_pair<kParts>(pair[p], value[p], value[p + 4]);
#pragma unroll
    for (int p = 0; p < kParts; ++p) {
        eights[p] = make_uint4(pair[0][p], pair[1][p], pair[2][p], pair[3][p]);
    }
}
