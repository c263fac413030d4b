// Halves of a run's pixels, made from global memory by all warps of a block.
#pragma once

#include "runs_planes.cuh"

constexpr int kAtOnce = 4;  // pieces that a thread loads before it splits any

// A run of whole rows of a map of n x n pixels, kWide pieces, with a piece of zeros
// after each row. n is a constant, because dividing by it would delay the first loads.
template <int kWide, int n> struct Run {
    static constexpr Plane kPlane{n};
    static constexpr int kPitch = n + 1;
    static constexpr int kRows = (kWide + 1) / kPitch;
    static_assert(kRows > 0, "a run has a row");
    static constexpr int kApart = kRows * kPitch;  // pieces to the next run
    static constexpr int kRuns = (n + kRows - 1) / kRows;
    static constexpr int kOwn = kApart < kWide ? kApart : kWide;  // not the next run's
    static constexpr int kPieces = kWide + 2 * kPitch + 2;  // with those of other taps
    static constexpr int kMap = n * n;
};

// Makes halves of the first `maps` maps from `from` on, in `eights` eights: a warp has
// every kWarps-th part of 32 pieces of an eight. Calls `start_copies` once, when its
// first loads have started.
template <int kParts, int kWarps, class Run, class Start>
__device__ __forceinline__ void split_pixels(Eight* to, const float* __restrict__ from,
                                             int first, int eights, int maps, int warp,
                                             int lane, const Start& start_copies)
{
    constexpr int kAcross = (Run::kPieces + kWarp - 1) / kWarp;
    for (int base = warp; base < eights * kAcross; base += kAtOnce * kWarps) {
        float value[kAtOnce][8];
        int at[kAtOnce];  // of the halves, or -1 for none
#pragma unroll
        for (int k = 0; k < kAtOnce; ++k) {
            const int eight = (base + k * kWarps) / kAcross;
            const int piece = (base + k * kWarps) % kAcross * kWarp + lane;
            const int place = Run::kPlane.place(first + piece);
            const bool mine = eight < eights && piece < Run::kPieces;
            // By step, part and eight of the step.
            const int row = eight / kEights * kParts * kEights + eight % kEights;
            at[k] = mine ? row * Run::kPieces + piece : -1;
            const float* here = from + size_t{8} * eight * Run::kMap + place;
#pragma unroll
            for (int m = 0; m < 8; ++m) {
                // Maps come in fours.
                const bool inside = place >= 0 && eight * 8 + m / 4 * 4 < maps;
                value[k][m] = inside && mine ? here[m * Run::kMap] : 0.0f;
            }
        }
        if (base == warp) start_copies();
#pragma unroll
        for (int k = 0; k < kAtOnce; ++k) {
            if (at[k] < 0) continue;
            Eight made[kParts];
            make_eights<kParts>(made, value[k]);
#pragma unroll
            for (int p = 0; p < kParts; ++p) {
                to[at[k] + p * kEights * Run::kPieces] = made[p];
            }
        }
    }
}
