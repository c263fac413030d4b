// The format of a 2:4 sparse matrix A of halves. Of each four neighbours in a row, two
// are kept: `values` has m rows of k / 2. `metadata` has their indices, four bits per
// four of k: for each slab of 64 of k and each 16 rows there are 32 words, one per lane
// of a warp, in the order that the tensor core needs. The word of lane 4g + t has 16 of
// k from 16t: of row g in its lower half, of row g + 8 in its upper half.
#pragma once

using Half = unsigned short;

constexpr int kSlab = 64;  // steps of k, whose metadata fill one register per lane
constexpr int kHigh = 16;  // rows of a warp's product
constexpr int kWords = 32;  // words of metadata for kHigh rows of a slab
// Metadata for rows beyond the end: elements 0 and 1 of each four.
constexpr unsigned kAnyMetadata = 0x44444444u;

// The start of the metadata of 16 rows; `tiles` is m / 16.
__device__ __forceinline__ const unsigned* metadata_of(
    const unsigned* metadata, int slab, int tile, int tiles)
{
    return metadata + (static_cast<size_t>(slab) * tiles + tile) * kWords;
}
