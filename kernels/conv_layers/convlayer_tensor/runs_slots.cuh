// How the rung runs cuts a layer, and where shared memory has what a step needs.
#pragma once

#include "../../common/hopper/tma.cuh"
#include "taps.cuh"

constexpr int kChain = 2;   // steps that are summed in tensor cores
constexpr int kGroups = 2;  // warpgroups that multiply
constexpr int kGroupThreads = 128;
constexpr int kConsumers = kGroups * kGroupThreads;
constexpr int kConsumerWarps = kConsumers / kWarp;
constexpr int kSplitters = 3;  // warps that make halves, and one for the copies
constexpr int kThreads = kConsumers + (1 + kSplitters) * kWarp;
constexpr int kRawSlots = 2;
// The weights of 8 output maps and of 4 input maps fill all banks.
constexpr int kWeightPitch = kDepth * kTaps + 4;

// A map with a column of zeros after each row, which is also the one before the next
// row, and with rows of zeros above and below. A pixel's piece is one row and one
// column after the piece of its first tap.
struct Padded {
    int n;

    __device__ __forceinline__ int pitch() const { return n + 1; }
    // The place in the map of a piece, or -1 for a zero.
    __device__ __forceinline__ int place(int piece) const
    {
        const int y = piece / pitch() - 1;
        const int x = piece % pitch() - 1;
        return x >= 0 && y >= 0 && y < n ? y * n + x : -1;
    }
};

// A block's run of kGroups * kWide pixels: its first piece, and the pieces of all taps.
// The floats of a map that these are made of are `count`, from `base` on, both
// multiples of four: those of n * n, for n is even.
template <int kWide> struct Run {
    Padded padded;
    int first, pieces;
    int base, count, pitch;

    __device__ __forceinline__ Run(int n, int first)
        : padded{n}, first(first),
          pieces(kGroups * kWide + 2 * padded.pitch() + 2),
          pitch((pieces + 11) / 4 * 4)
    {
        const int row = first / padded.pitch() - 1;
        const int column = first % padded.pitch() - 1;
        base = max(0, row * n + column) / 4 * 4;
        const int end = first + pieces - 1;
        const int last_row = end / padded.pitch() - 1;
        const int last_column = min(end % padded.pitch() - 1, n - 1);
        const int last = min(n * n - 1, last_row * n + last_column);
        count = (last - base + 4) / 4 * 4;
    }
};

struct Weights {
    float at[kOuts * kWeightPitch];
};

// Shared memory: kSlots slots of weights as floats and of halves of pixels, by part and
// eight input maps; then kRawSlots slots of pixels as floats.
template <int kParts, int kWide, int kSlots> struct Slots {
    unsigned char* memory;
    int pieces, pitch;

    __device__ __forceinline__ int bytes() const
    {
        return sizeof(Weights) + kParts * kEights * pieces * sizeof(Eight);
    }
    __device__ __forceinline__ Weights* weights(int slot) const
    {
        return reinterpret_cast<Weights*>(memory + slot * bytes());
    }
    __device__ __forceinline__ Eight* pixels(int slot) const
    {
        return reinterpret_cast<Eight*>(weights(slot) + 1);
    }
    __device__ __forceinline__ float* raw(int slot) const
    {
        return reinterpret_cast<float*>(memory + kSlots * bytes()) +
               slot * kDepth * pitch;
    }
};

template <int kSlots> struct Barriers {
    Barrier full[kSlots], empty[kSlots];
    Barrier raw_full[kRawSlots], raw_empty[kRawSlots];
};
