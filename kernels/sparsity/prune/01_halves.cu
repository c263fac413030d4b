// Idea: a thread prunes 16 neighbours of a row and writes half a word of metadata.
// From the rung before: the first rung.
// Requires: m a multiple of 16, k of 64; dense and values aligned to 16 bytes.
#include "pruning.cuh"

constexpr int kThreads = 256;

extern "C" __global__ void __launch_bounds__(kThreads)
    prune_halves(const Half* __restrict__ dense, Half* __restrict__ values,
                 Half* __restrict__ metadata, int m, int k)
{
    const size_t piece = static_cast<size_t>(blockIdx.x) * kThreads + threadIdx.x;
    const int row = static_cast<int>(piece / (k / kPiece)), at = piece % (k / kPiece);
    if (row >= m) return;
    const Sixteen in = load(dense + piece * kPiece);
    uint4 kept;
    const unsigned half = prune(in, kept);
    *reinterpret_cast<uint4*>(values + piece * kPiece / 2) = kept;
    const int lane = row % 8 * 4 + at % 4, upper = row / 8 % 2;
    const size_t tile = static_cast<size_t>(at / 4) * (m / 16) + row / 16;
    metadata[(tile * 32 + lane) * 2 + upper] = static_cast<Half>(half);
}
