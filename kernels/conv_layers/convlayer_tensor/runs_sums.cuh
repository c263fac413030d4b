// The end of a block of the rung runs: its sums go to memory by way of shared memory,
// because rows of a run begin anywhere.
#pragma once

#include "runs_slots.cuh"

// Sums of kColumns pixels of a block, by output map. Those of four output maps x eight
// pixels fill all banks.
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

// Stores sums of the run's pixels from `first` on: a warp has every kConsumerWarps-th
// of `outs` maps.
template <int kColumns>
__device__ __forceinline__ void store(const Sums<kColumns>& sums,
                                      float* __restrict__ output, const Padded& padded,
                                      int outs, int first, int warp, int lane)
{
    constexpr int kEach = (kColumns + kWarp - 1) / kWarp;
    const int map = padded.n * padded.n;
    int place[kEach];  // in the map, or -1 for a zero between rows
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
        const int column = k * kWarp + lane;
        // The piece of the middle tap.
        const int piece = first + column + padded.pitch() + 1;
        place[k] = column < kColumns ? padded.place(piece) : -1;
    }
    for (int out = warp; out < min(outs, kOuts); out += kConsumerWarps) {
        float* to = output + static_cast<size_t>(out) * map;
#pragma unroll
        for (int k = 0; k < kEach; ++k) {
            if (place[k] >= 0) to[place[k]] = sums.at[out][k * kWarp + lane];
        }
    }
}

// The last pass: output[i] = parts[0][i] + parts[1][i] + ..., four elements a thread.
// For more than one block of an SM, ptxas would keep two or three loads under way.
template <int kBlock, int kNumber>
__global__ void __launch_bounds__(kBlock, 1)
    convlayer_add_runs(const float4* __restrict__ parts, float4* __restrict__ output,
                       size_t count)
{
    const size_t at = static_cast<size_t>(blockIdx.x) * kBlock + threadIdx.x;
    if (at >= count) return;
    wait_for_launch_before();
    float4 here[kNumber];  // all loads are under way before the first sum
#pragma unroll
    for (int part = 0; part < kNumber; ++part) here[part] = parts[part * count + at];
    float4 sum = {};
#pragma unroll
    for (int part = 0; part < kNumber; ++part) {
        sum.x += here[part].x;
        sum.y += here[part].y;
        sum.z += here[part].z;
        sum.w += here[part].w;
    }
    output[at] = sum;
}
