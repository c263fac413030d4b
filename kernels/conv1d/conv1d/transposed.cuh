// Parts of the rungs whose warps load filters coalesced and transpose them in shared
// memory. A lane has kChannels neighbouring channels.
#pragma once
#include "../../common/warp.cuh"
#include "../shape.cuh"
#include "packs.cuh"

// Loads a lane's packs of a chunk of a filter, of which `floats` floats exist.
template <int kFilterWidth, int kLoads, class Load>
__device__ __forceinline__ void load_filters(Pack<kFilterWidth> (&loaded)[kLoads],
                                             const float* filters, int floats,
                                             int lane, Load load)
{
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
        const int pack = i * kWarp + lane;
        if (pack * kFilterWidth < floats) {
            loaded[i] =
                load(reinterpret_cast<const Pack<kFilterWidth>*>(filters) + pack);
        }
    }
}

// Stores a lane's packs of a chunk of kFloats floats to shared memory.
template <int kFloats, int kFilterWidth, int kLoads>
__device__ __forceinline__ void store_filters(
    float* to, const Pack<kFilterWidth> (&loaded)[kLoads], int lane)
{
    constexpr int kPacks = kFloats / kFilterWidth;
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
        if (kPacks % kWarp == 0 || i * kWarp + lane < kPacks) {
            reinterpret_cast<Pack<kFilterWidth>*>(to)[i * kWarp + lane] = loaded[i];
        }
    }
}

// Adds a lane's products to its sums, one for each position of a tile.
template <int kTile, int kTaps, int kChannels, int kWindow>
__device__ __forceinline__ void multiply(float* sum,
                                         const float (&window)[kChannels][kWindow],
                                         const float (&filter)[kChannels * kTaps])
{
#pragma unroll
    for (int c = 0; c < kChannels; ++c) {
#pragma unroll
        for (int k = 0; k < kTaps; ++k) {
#pragma unroll
            for (int p = 0; p < kTile; ++p) {
                sum[p] += window[c][p + k] * filter[c * kTaps + k];
            }
        }
    }
}

// Stores a warp's sums, and waits for all other warps of the block.
template <int kTile>
__device__ __forceinline__ void store_sums(float (*partial)[kTile],
                                           float (&sum)[kTile], int warp, int lane)
{
#pragma unroll
    for (int p = 0; p < kTile; ++p) {
        sum[p] = warp_sum(sum[p]);
        if (lane == 0) {
            partial[warp][p] = sum[p];
        }
    }
    __syncthreads();  // all warps have stored their sums before any are added
}

// Adds up the sums of all warps for the position of this thread.
template <int kTile>
__device__ __forceinline__ float add_warps(const float (*partial)[kTile])
{
    float total = 0.0f;
    for (int w = 0; w < blockDim.x / kWarp; ++w) {
        total += partial[w][threadIdx.x];
    }
    return total;
}
