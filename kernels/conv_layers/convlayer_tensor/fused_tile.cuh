// The tile of the rungs that make halves in shared memory, and their numbers of slots.
#pragma once
#include "../../common/hopper/dependent.cuh"
#include "../../common/hopper/tma.cuh"
#include "../../common/hopper/wgmma.cuh"
#include "taps.cuh"

constexpr int kWide = 8;  // pixels in a row of a strip; their eights are contiguous
constexpr int kHaloWide = kWide + 2;
// A box must start at a multiple of 16 bytes: 4 pixels left of the tile, not 1.
constexpr int kRawLeft = 4;
constexpr int kTapSlots = 4;    // the weights of up to 4 steps stay
constexpr int kPixelSlots = 4;  // at least 3: each of two warpgroups holds one
