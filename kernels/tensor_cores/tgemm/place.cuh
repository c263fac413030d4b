// The order in which tiles of C are computed.
#pragma once

constexpr int kGroup = 8;  // rows of clusters that are computed side by side

// The place of tile t. Tiles run down columns of `kGroup` tiles, so that concurrent
// blocks share rows of A and columns of B in L2.
__device__ __forceinline__ int2 place(int t, int rows, int columns)
{
    const int group = t / (kGroup * columns), first = group * kGroup;
    const int height = min(kGroup, rows - first), rest = t - first * columns;
    return make_int2(first + rest % height, rest / height);
}
