// The end of a block of the rung runs: its sums go to memory by way of shared memory,
// because rows of a run begin anywhere.
#pragma once

#include "runs_ring.cuh"

// Sums of kColumns pieces of a block, by output map. Those of four output maps x eight
// pieces fill all banks.
template <int kColumns> struct Sums {
    static constexpr int kPitch = (kColumns + 23) / 32 * 32 + 8;
    float at[kOuts][kPitch];
};

// Waits for the other threads that multiply.
__device__ __forceinline__ void sync_consumers()
{
    asm volatile("bar.sync 1, %0;" ::"n"(kConsumers) : "memory");
}

template <int kColumns, int kSums>
__device__ __forceinline__ void keep(Sums<kColumns>& sums, const float (&total)[kSums],
                                     int column, int thread)
{
    constexpr int kEight = 8 * Sums<kColumns>::kPitch;  // eight output maps
    float* to =
        &sums.at[thread / kWarp * 16 + thread % kWarp / 4][column + thread % 4 * 2];
#pragma unroll
    for (int j = 0; j < kSums; j += 2) {
        *reinterpret_cast<float2*>(to + j / 2 % 2 * kEight + j / 4 * 8) =
            make_float2(total[j], total[j + 1]);
    }
}

// Stores the sums of pieces from `first` on, or adds them: a warp has every
// kConsumerWarps-th of `outs` maps.
template <int kColumns>
__device__ __forceinline__ void store(const Sums<kColumns>& sums,
                                      float* __restrict__ output, const Plane& plane,
                                      int outs, int first, bool add, int warp, int lane)
{
    constexpr int kEach = (kColumns + kWarp - 1) / kWarp;
    int place[kEach];  // in the map, or -1 for none
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
        const int column = k * kWarp + lane;
        place[k] = column < kColumns ? plane.place_of_first_tap(first + column) : -1;
    }
    for (int out = warp; out < min(outs, kOuts); out += kConsumerWarps) {
        float* to = output + static_cast<size_t>(out) * plane.n * plane.n;
#pragma unroll
        for (int k = 0; k < kEach; ++k) {
            if (place[k] < 0) continue;
            const float sum = sums.at[out][k * kWarp + lane];
            if (add) {
                atomicAdd(to + place[k], sum);
            } else {
                to[place[k]] = sum;
            }
        }
    }
}
