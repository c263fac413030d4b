// Tiles of 128 x 192. A thread has 96 sums, and registers for 96 of the previous tile.
// With one buffer for pieces, a fifth stage fits into shared memory.
#pragma once
#include "small.cuh"

namespace large {
template <> struct Plan<192> {
    static constexpr int kStages = 5, kPlaces = 1, kLater = 6, kUnroll = 2;
};
}  // namespace large
