// Shared by the rungs that stream through planes of the volume: the tile in shared
// memory, its addresses, the weights, and stores of rows.
#pragma once
#include "outside.cuh"

constexpr int kQuad = 4;

// The shared memory of a block with K x K x K weights. A block has kDown rows of
// kAcross threads with kOut outputs each. A row of the tile starts kLead floats before
// the first output.
template <int K, int kAcross, int kDown, int kOut>
struct PlaneTile {
    static constexpr int kEdge = K;
    static constexpr int kThreads = kAcross * kDown;
    static constexpr int kRadius = K / 2;
    static constexpr int kLead = (kRadius + kQuad - 1) / kQuad * kQuad;
    static constexpr int kWide = kAcross * kOut + 2 * kLead;
    static constexpr int kHigh = kDown + K - 1;
    // An odd number of float4s, so that the windows of neighbouring rows are in
    // different banks.
    static constexpr int kPitch = kWide / kQuad % 2 == 1 ? kWide : kWide + kQuad;
    static constexpr int kPlane = kHigh * kPitch;
    static constexpr int kWindow = (kLead + kOut + kRadius + kQuad - 1) / kQuad * kQuad;
    // The weights of one dy.
    static constexpr int kTaps = (K * K + kQuad - 1) / kQuad * kQuad;
};

// Fills places[i]: the index of the tile's piece i within a plane of the volume, or -1
// if it is outside the volume.
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

// Fills taps[dy][slot][dx]: a plane, or the first plane of a step, contributes to slot
// s with dz = K - 1 - s. Returns whether a weight is not finite.
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

// Stores the part of a thread's row of outputs that is inside the volume.
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
