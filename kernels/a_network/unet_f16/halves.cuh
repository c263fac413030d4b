// Loads of float16 weights, with the widest loads that divide their number.
#pragma once
#include <cuda_fp16.h>
#include "../../common/async_copy.cuh"

__device__ __forceinline__ float as_float(__half weight)
{
    return __half2float(weight);
}

__device__ __forceinline__ void copy_four(__half* to, const __half* from)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(shared_address(to)),
                 "l"(from)
                 : "memory");
}

template <int kCount>
__device__ __forceinline__ void load(float* to, const __half* from)
{
    constexpr int kWide = kCount % 4 == 0 ? 4 : kCount % 2 == 0 ? 2 : 1;
#pragma unroll
    for (int i = 0; i < kCount; i += kWide) {
        if constexpr (kWide == 1) {
            to[i] = __half2float(from[i]);
        } else {
            unsigned words[kWide / 2];
            if constexpr (kWide == 4) {
                *reinterpret_cast<uint2*>(words) =
                    *reinterpret_cast<const uint2*>(from + i);
            } else {
                words[0] = *reinterpret_cast<const unsigned*>(from + i);
            }
#pragma unroll
            for (int j = 0; j < kWide; ++j) {
                const unsigned short bits = words[j / 2] >> 16 * (j % 2);
                to[i + j] = __half2float(__ushort_as_half(bits));
            }
        }
    }
}
