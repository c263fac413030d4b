// Loads of one float or of four, for the rungs whose warps load their own filters.
#pragma once

// kWidth floats, loaded by one instruction.
template <int kWidth>
struct alignas(kWidth * sizeof(float)) Pack {
    float at[kWidth];
};

// Loads data that is used only once: the caches evict it first (ld.global.cs).
__device__ Pack<1> load_once(const Pack<1>* from)
{
    return {__ldcs(from->at)};
}
__device__ Pack<4> load_once(const Pack<4>* from)
{
    const float4 four = __ldcs(reinterpret_cast<const float4*>(from));
    return {four.x, four.y, four.z, four.w};
}

// The most warps per block: as many as fit their filters in 40 KB of shared memory, at
// most eight.
constexpr int most_warps(int taps)
{
    const int channels = 4;  // per lane
    const int warps =
        (40 << 10) / (32 * channels * taps * static_cast<int>(sizeof(float)));
    return warps < 1 ? 1 : warps > 8 ? 8 : warps;
}
