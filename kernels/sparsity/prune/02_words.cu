// Idea: a warp prunes 16 rows of 64 elements, whose metadata are contiguous.
// From the rung before: each lane has 16 neighbours of two rows, as the tensor core
// needs them, so a warp writes its 32 words of metadata at once.
// Requires: m a multiple of 16, k of 64; dense and values aligned to 16 bytes.
#include "pruning.cuh"

constexpr int kThreads = 256;

extern "C" __global__ void __launch_bounds__(kThreads)
    prune_words(const Half* __restrict__ dense, Half* __restrict__ values,
                unsigned* __restrict__ metadata, int m, int k)
{
    const int lane = threadIdx.x % 32, slabs = k / 64;
    const size_t warp = static_cast<size_t>(blockIdx.x) * (kThreads / 32) +
                        threadIdx.x / 32;
    const int tile = static_cast<int>(warp / slabs), slab = warp % slabs;
    if (tile >= m / 16) return;
    const size_t row = static_cast<size_t>(tile) * 16 + lane / 4;
    const size_t upper = row * k + slab * 64 + lane % 4 * kPiece;
    const size_t lower = upper + static_cast<size_t>(8) * k;
    const Sixteen first = load(dense + upper), second = load(dense + lower);
    uint4 kept[2];
    const unsigned word = prune(first, kept[0]) | prune(second, kept[1]) << 16;
    *reinterpret_cast<uint4*>(values + upper / 2) = kept[0];
    *reinterpret_cast<uint4*>(values + lower / 2) = kept[1];
    metadata[(static_cast<size_t>(slab) * (m / 16) + tile) * 32 + lane] = word;
}
