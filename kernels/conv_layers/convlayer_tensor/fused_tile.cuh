// The tile of the rungs that make halves in shared memory, and slots that they share.
#pragma once
#include "../../common/hopper/dependent.cuh"
#include "../../common/hopper/tma.cuh"
#include "../../common/hopper/wgmma.cuh"
#include "taps.cuh"

constexpr int kWide = 8;  // pixels of a row of a strip, whose eights are contiguous
constexpr int kHaloWide = kWide + 2;
// Rows of boxes start at multiples of 16 bytes: 4 pixels before the tile, not 1.
constexpr int kRawLeft = 4;
constexpr int kTapSlots = 4;    // steps whose weights stay
constexpr int kPixelSlots = 4;  // three at least: each warpgroup holds one
