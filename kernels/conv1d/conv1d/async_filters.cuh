// Asynchronous copies of a warp's filters to shared memory.
#pragma once
#include "../../common/async_copy.cuh"
#include "../../common/warp.cuh"
#include "packs.cuh"

// Starts to copy a warp's chunk of a filter: kFloats floats, or fewer in the last
// chunk, which is padded with zeros.
template <int kFloats, int kWidth>
__device__ void copy_chunk(float* to, const float* from, int floats)
{
    const int first = threadIdx.x % kWarp * kWidth;
    if (floats >= kFloats) {  // the same for all lanes, so no test per float
#pragma unroll
        for (int i = 0; i < kFloats; i += kWarp * kWidth) {
            if (i + kWarp * kWidth <= kFloats || i + first < kFloats) {
                copy_async<kWidth>(to + first + i, from + first + i);
            }
        }
    } else {
#pragma unroll 1
        for (int at = first; at < kFloats; at += kWarp * kWidth) {
            if (at < floats) {
                copy_async<kWidth>(to + at, from + at);
            } else {
                for (int e = 0; e < kWidth; ++e) {
                    to[at + e] = 0.0f;
                }
            }
        }
    }
}

// Calls `function` with the types of 0, 1, ... kEnd - 1, because the number of groups
// to wait for must be a compile-time constant.
template <int kValue>
struct Number {
    static constexpr int value = kValue;
};
template <int kEnd, int kNext, typename Function>
__device__ void for_each_group(Function function)
{
    if constexpr (kNext < kEnd) {
        function(Number<kNext>{});
        for_each_group<kEnd, kNext + 1>(function);
    }
}
