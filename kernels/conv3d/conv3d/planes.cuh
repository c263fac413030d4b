// What the rungs share that stream through planes of the volume: the tile in shared
// memory, its addresses, the weights, and stores of rows.
#pragma once
#include "outside.cuh"

constexpr int kQuad = 4;

// What a block with K x K x K weights needs of shared memory. A block has kAcross
// threads of kOut outputs side by side and kDown below one another. A row begins kLead
// floats before the tile's first output.
template <int K, int kAcross, int kDown, int kOut>
struct PlaneTile {
    static constexpr int kEdge = K;
    static constexpr int kThreads = kAcross * kDown;
    static constexpr int kRadius = K / 2;
    static constexpr int kLead = (kRadius + kQuad - 1) / kQuad * kQuad;
    static constexpr int kWide = kAcross * kOut + 2 * kLead;
    static constexpr int kHigh = kDown + K - 1;
    // An odd number of float4s: the windows of two neighbouring rows lie in different
    // banks.
    static constexpr int kPitch = kWide / kQuad % 2 == 1 ? kWide : kWide + kQuad;
    static constexpr int kPlane = kHigh * kPitch;
    static constexpr int kWindow = (kLead + kOut + kRadius + kQuad - 1) / kQuad * kQuad;
    // The weights of one dy.
    static constexpr int kTaps = (K * K + kQuad - 1) / kQuad * kQuad;
};

// places[i]: the index within a plane of the volume of piece i of the tile, or -1 for a
// piece outside the volume.
template <class T, int kWidth>
__device__ void find_places(int* __restrict__ places, int n, int first_row,
                            int first_col)
{
    constexpr int kPieces = T::kPitch / kWidth;
    for (int i = threadIdx.x; i < T::kHigh * kPieces; i += T::kThreads) {
        const int y = first_row + i / kPieces - T::kRadius,
                  x = first_col + i % kPieces * kWidth - T::kLead;
        places[i] = y >= 0 && y < n && x >= 0 && x < n ? y * n + x : -1;
    }
}

// taps[dy][slot][dx]: for the sums of slot s a plane, or the first plane of a step, is
// the one with dz = K - 1 - s. Returns whether a weight is not finite.
template <class T>
__device__ bool load_weights(float* __restrict__ taps,
                             const float* __restrict__ weights)
{
    constexpr int K = T::kEdge, kTaps = T::kTaps;
    bool found = false;
    for (int i = threadIdx.x; i < K * kTaps; i += T::kThreads) {
        const int dy = i / kTaps, slot = i % kTaps / K, dx = i % kTaps % K;
        taps[i] = slot < K ? weights[((K - 1 - slot) * K + dy) * K + dx] : 0.0f;
        found |= is_strange(taps[i]);
    }
    return found;
}

// Stores a row of a thread's outputs as far as it lies in the volume.
template <int kWidth, int kOut>
__device__ void store_row(float* __restrict__ row, int col, int n,
                          const float (&sum)[kOut])
{
#pragma unroll
    for (int o = 0; o < kOut; o += kWidth) {
        if (col + o < n) {
            if constexpr (kWidth == kQuad) {
                *reinterpret_cast<float4*>(row + col + o) = {sum[o], sum[o + 1],
                                                             sum[o + 2], sum[o + 3]};
            } else {
                row[col + o] = sum[o];
            }
        }
    }
}
