// Floats as sums of parts that tensor cores multiply. Each part is the remainder of the
// previous ones, rounded to the type's significand, so the next remainder is exact.
#pragma once

#include "../../common/hopper/wgmma.cuh"
#include "scales.cuh"

// Rounds x to a part, returns its bits, and leaves the remainder in x.
struct Tf32 {  // 11 bits
    using Bits = unsigned;
    static __device__ __forceinline__ Bits take(float& x)
    {
        Bits part;
        asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(part) : "f"(x));
        x = subtract(x, __uint_as_float(part));
        return part;
    }
    template <int kSums>
    static __device__ __forceinline__ void multiply(
        float (&d)[kSums], Descriptor a, Descriptor b, bool more)
    {
        wgmma_tf32(d, a, b, more);
    }
};
struct Bf16 {  // 8 bits
    using Bits = unsigned short;
    static __device__ __forceinline__ Bits take(float& x)
    {
        Bits part;
        asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(part) : "f"(x));
        x = subtract(x, __uint_as_float(static_cast<unsigned>(part) << 16));
        return part;
    }
    template <int kSums>
    static __device__ __forceinline__ void multiply(
        float (&d)[kSums], Descriptor a, Descriptor b, bool more)
    {
        wgmma_bf16(d, a, b, more);
    }
};
struct F16 {  // 11 bits, exponents from 2^-14 to 2^15
    using Bits = unsigned short;
    static __device__ __forceinline__ Bits take(float& x)
    {
        Bits part;
        float value;
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(part) : "f"(x));
        asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(part));
        x = subtract(x, value);
        return part;
    }
    template <int kSums>
    static __device__ __forceinline__ void multiply(
        float (&d)[kSums], Descriptor a, Descriptor b, bool more)
    {
        wgmma_f16(d, a, b, more);
    }
};

constexpr int kVectors = 32, kDepth = 64, kSplitThreads = 256;

// Splits 32 vectors of length k per block: rows of A (`kRows`), or columns of B. Writes
// part p of vector v to parts[(p * count + v) * pitch], with zeros beyond k.
template <typename Type, int kParts, bool kRows>
__global__ void __launch_bounds__(kSplitThreads)
split(const float* __restrict__ from, int ld, int count, int k,
      int* __restrict__ exponents, typename Type::Bits* __restrict__ parts, int pitch)
{
    __shared__ float tile[kVectors][kDepth + 1];
    __shared__ unsigned largest[kVectors];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int first = blockIdx.x * kVectors;
    if (threadIdx.x < kVectors) largest[threadIdx.x] = 0;
    __syncthreads();
    // Neighbouring lanes read neighbours in memory: along k in A, across vectors in B.
    const auto each = [&](int start, auto&& visit) {
#pragma unroll
        for (int i = 0; i < kVectors * kDepth / kSplitThreads; ++i) {
            const int v = kRows ? warp + i / 2 * 8 : lane;
            const int at = kRows ? lane + i % 2 * 32 : warp + i * 8;
            const bool inside = first + v < count && start + at < k;
            const size_t row = kRows ? first + v : start + at;
            const int column = kRows ? start + at : first + v;
            visit(v, at, inside ? from[row * ld + column] : 0.0f);
        }
    };
    for (int start = 0; start < k; start += kDepth) {
        each(start, [&](int v, int, float x) { atomicMax(&largest[v], magnitude(x)); });
    }
    __syncthreads();
    if (threadIdx.x < kVectors && first + threadIdx.x < count) {
        exponents[first + threadIdx.x] = exponent_for(largest[threadIdx.x]);
    }
    for (int start = 0; start < pitch; start += kDepth) {
        each(start, [&](int v, int at, float x) { tile[v][at] = x; });
        __syncthreads();
        for (int v = warp; v < kVectors && first + v < count; v += 8) {
            const float scale = scale_of(exponent_for(largest[v]));
#pragma unroll
            for (int at = lane; at < kDepth; at += 32) {
                float x = multiply_exactly(tile[v][at], scale);
                if (start + at >= pitch) break;
#pragma unroll
                for (int p = 0; p < kParts; ++p) {
                    parts[(static_cast<size_t>(p) * count + first + v) * pitch + start +
                          at] = Type::take(x);
                }
            }
        }
        __syncthreads();
    }
}
