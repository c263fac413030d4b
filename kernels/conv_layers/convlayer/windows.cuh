// Components of winograd_2d: the layout of a block's sums, and the transforms of
// windows, weights and sums.
#pragma once
#include "../../common/warp.cuh"

constexpr int kTap = 3;  // taps per row and per column
constexpr int kTaps = kTap * kTap;
constexpr int kTile = 2;  // outputs of a tile in either direction
constexpr int kSide = 4;  // inputs of its window, and products, in either direction
constexpr int kProducts = kSide * kSide;
constexpr int kDepth = 8;  // input maps per stage

// A block has kOuts output maps x kTiles tiles x kProducts products. A warp has
// kProducts / kWarps of the products, and for each of these a thread has kQuadsOut x
// kQuadsTile squares of 4 x 4 sums.
template <int kOuts_, int kTiles_, int kQuadsOut, int kQuadsTile, int kWarps>
struct Shape {
    static constexpr int kOuts = kOuts_, kTiles = kTiles_;
    static constexpr int kThreads = kWarp * kWarps, kOwn = kProducts / kWarps;
    static constexpr int kLanesOut = kOuts / (4 * kQuadsOut),
                         kLanesTile = kTiles / (4 * kQuadsTile);
    static_assert(kLanesOut * kLanesTile == kWarp && kOwn * kWarps == kProducts,
                  "every sum has one thread");
    // A stage: the factors of the weights, [product][input map][output map], and of the
    // windows, [product][input map][tile]. A warp's store, eight input maps of four
    // output maps, covers all 32 banks.
    static constexpr int kPitch = kOuts + 4;
    static constexpr int kWeights = kProducts * kDepth * kPitch,
                         kStage = kWeights + kProducts * kDepth * kTiles;
    // The untransformed weights, [output map][input map][tap]: lanes nine floats apart
    // read different banks.
    static constexpr int kRow = kDepth * kTaps, kRaw = kOuts * kRow;
    // Windows and sets of weights that a thread transforms per stage; either all
    // threads of a warp have windows or none has.
    static constexpr int kLoaders =
        kThreads < kDepth * kTiles ? kThreads : kDepth * kTiles;
    static constexpr int kWindows = kDepth * kTiles / kLoaders,
                         kMapStride = kLoaders / kTiles;
    static constexpr int kSets = kDepth * kOuts / kThreads;
    static_assert(kLoaders % kTiles == 0 && kWindows * kLoaders == kDepth * kTiles,
                  "one tile for a thread");
    static_assert(kSets * kThreads == kDepth * kOuts,
                  "all threads have as many weights");
    // The pitch of the final sums, [product][output map][tile].
    static constexpr int kSumPitch = kTiles + 4;
};

// Transforms four inputs into one factor of each of four products.
__device__ void transform_inputs(float& a, float& b, float& c, float& d)
{
    const float first = a - c, second = b + c, third = c - b, fourth = b - d;
    a = first, b = second, c = third, d = fourth;
}

// Transforms three taps into the other factors of the four products.
__device__ void transform_taps(float* to, float a, float b, float c)
{
    const float outer = 0.5f * (a + c), inner = 0.5f * b;
    to[0] = a;
    to[1] = outer + inner;
    to[2] = outer - inner;
    to[3] = c;
}

// Stores a window of 4 x 4 inputs to shared memory, transformed down its columns and
// then along its rows.
template <class S>
__device__ void store_window(float* to, float* d)
{
#pragma unroll
    for (int i = 0; i < kSide; ++i) {
        transform_inputs(d[i], d[i + kSide], d[i + 2 * kSide], d[i + 3 * kSide]);
    }
#pragma unroll
    for (int i = 0; i < kSide; ++i) {
        transform_inputs(d[kSide * i], d[kSide * i + 1], d[kSide * i + 2],
                         d[kSide * i + 3]);
    }
#pragma unroll
    for (int p = 0; p < kProducts; ++p) {
        to[p * kDepth * S::kTiles] = d[p];
    }
}

// Stores 3 x 3 weights to shared memory, transformed along their rows and then down the
// columns.
template <class S>
__device__ void store_factors(float* to, const float* g)
{
    float half[kTap][kSide];
#pragma unroll
    for (int r = 0; r < kTap; ++r) {
        transform_taps(half[r], g[r * kTap], g[r * kTap + 1], g[r * kTap + 2]);
    }
#pragma unroll
    for (int c = 0; c < kSide; ++c) {
        float whole[kSide];
        transform_taps(whole, half[0][c], half[1][c], half[2][c]);
#pragma unroll
        for (int r = 0; r < kSide; ++r) {
            to[(r * kSide + c) * kDepth * S::kPitch] = whole[r];
        }
    }
}

// Reads kCount quads, kStride floats apart.
template <int kCount, int kStride>
__device__ void read_quads(float* to, const float* from)
{
#pragma unroll
    for (int q = 0; q < kCount; ++q) {
        *reinterpret_cast<float4*>(to + 4 * q) =
            *reinterpret_cast<const float4*>(from + q * kStride);
    }
}

// Transforms the sixteen sums of a tile into its 2 x 2 outputs.
template <class S>
__device__ void read_tile(float (&outputs)[kTile][kTile], const float* sums)
{
    float half[kTile][kSide];
#pragma unroll
    for (int c = 0; c < kSide; ++c) {
        float s[kSide];
#pragma unroll
        for (int r = 0; r < kSide; ++r) {
            s[r] = sums[(r * kSide + c) * S::kOuts * S::kSumPitch];
        }
        half[0][c] = s[0] + s[1] + s[2];
        half[1][c] = s[1] - s[2] - s[3];
    }
#pragma unroll
    for (int r = 0; r < kTile; ++r) {
        outputs[r][0] = half[r][0] + half[r][1] + half[r][2];
        outputs[r][1] = half[r][1] - half[r][2] - half[r][3];
    }
}
