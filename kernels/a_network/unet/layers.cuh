// The layers' shapes and products, for all kernels of the network.
#pragma once
#include "../../conv1d/conv1d/fold.cuh"

constexpr int kGroups = 8;  // channel groups of a norm
constexpr int kSteps = 16;  // time steps of an action sequence
constexpr int kAction = 2;  // components of an action
constexpr int kObservation = 10;

enum Kind : int { kSame, kDown, kUp, kPoint };

constexpr int taps_of(int kind)
{
    return kind == kSame ? 5 : kind == kDown ? 3 : kind == kUp ? 4 : 1;
}
constexpr int length_after(int kind, int length)
{
    return kind == kDown ? length / 2 : kind == kUp ? 2 * length : length;
}

// Twice the output position to which tap t maps input position p.
constexpr int twice_after(int kind, int p, int t)
{
    return kind == kUp     ? 2 * (2 * p + t - 1)
           : kind == kDown ? p - t + 1
                           : 2 * (p - t + taps_of(kind) / 2);
}

// Loads kCount floats with the widest loads that divide kCount; `from` is so aligned.
template <int kCount>
__device__ __forceinline__ void load(float* to, const float* from)
{
    constexpr int kWide = kCount % 4 == 0 ? 4 : kCount % 2 == 0 ? 2 : 1;
#pragma unroll
    for (int i = 0; i < kCount; i += kWide) {
        if constexpr (kWide == 4) {
            *reinterpret_cast<float4*>(to + i) =
                *reinterpret_cast<const float4*>(from + i);
        } else if constexpr (kWide == 2) {
            *reinterpret_cast<float2*>(to + i) =
                *reinterpret_cast<const float2*>(from + i);
        } else {
            to[i] = from[i];
        }
    }
}

// Adds the products of a lane's kEach rows and its weights of one output.
template <int kKind, int kEach, int kLength, int kAfter>
__device__ __forceinline__ void multiply(float (&sum)[kAfter],
                                         const float (&x)[kEach][kLength],
                                         const float* w)
{
    constexpr int kTaps = taps_of(kKind);
#pragma unroll
    for (int each = 0; each < kEach; ++each) {
#pragma unroll
        for (int t = 0; t < kTaps; ++t) {
#pragma unroll
            for (int p = 0; p < kLength; ++p) {
                const int twice = twice_after(kKind, p, t);
                if (twice >= 0 && twice % 2 == 0 && twice / 2 < kAfter) {
                    sum[twice / 2] =
                        fmaf(w[each * kTaps + t], x[each][p], sum[twice / 2]);
                }
            }
        }
    }
}
