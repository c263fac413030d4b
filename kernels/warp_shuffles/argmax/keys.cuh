// Shared by both rungs: a float's key and its index in one word, and the best word of
// a thread, of a warp and of a block. The file that includes this defines kThreads,
// kUnroll, kWidth and kChunk.
#pragma once

constexpr int kWarp = 32;
constexpr int kWarps = kThreads / kWarp;
constexpr unsigned kAllLanes = 0xffffffffu;
static_assert(
    kThreads % kWarp == 0 && kWarps <= kWarp,
    "whole warps, and no more than one warp can compare");
using Packed = unsigned long long;

// Maps a float to an unsigned integer in the order of NumPy's argmax: NaN above all,
// and both zeros equal.
__device__ unsigned key_of(float value)
{
    const unsigned bits = __float_as_uint(value);
    const unsigned magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) {
        return 0xffffffffu;
    }
    return bits == magnitude || magnitude == 0 ? magnitude | 0x80000000u : ~bits;
}

// Key and index in one word: the largest word has the largest float and, among equals,
// the first.
__device__ Packed pack(unsigned key, unsigned index)
{
    return static_cast<Packed>(key) << 32 | (0xffffffffu - index);
}

__device__ long long index_of(Packed packed)
{
    return 0xffffffffu - static_cast<unsigned>(packed);
}

// The best of the warp's values, in lane 0. Every lane of the warp must call it.
__device__ Packed warp_best(Packed value)
{
    for (int offset = kWarp / 2; offset > 0; offset /= 2) {
        const Packed other = __shfl_down_sync(kAllLanes, value, offset);
        value = other > value ? other : value;
    }
    return value;
}

// The best of the block's values, in thread 0. Every thread of the block must call it.
__device__ Packed block_best(Packed value)
{
    __shared__ Packed partial[kWarps];
    const int lane = threadIdx.x % kWarp;
    const int warp = threadIdx.x / kWarp;
    value = warp_best(value);
    if (lane == 0) {
        partial[warp] = value;
    }
    __syncthreads();  // every warp has stored its result before the first warp reads
    if (warp == 0) {
        value = warp_best(lane < kWarps ? partial[lane] : 0);
    }
    return value;
}

// The best of this thread's floats of the block's chunk. Indices increase, so only a
// larger key replaces the best.
__device__ Packed thread_best(const float* __restrict__ source, size_t n)
{
    const size_t start = static_cast<size_t>(blockIdx.x) * kChunk;
    unsigned best = 0;
    unsigned at = 0xffffffffu;
    const auto consider = [&](float value, size_t index) {
        const unsigned key = key_of(value);
        if (key > best) {
            best = key;
            at = static_cast<unsigned>(index);
        }
    };
    if (start + kChunk <= n) {
        const float4* quads = reinterpret_cast<const float4*>(source + start);
        float4 value[kUnroll];
#pragma unroll
        for (int u = 0; u < kUnroll; ++u) {
            value[u] = quads[threadIdx.x + u * kThreads];
        }
#pragma unroll
        for (int u = 0; u < kUnroll; ++u) {
            const size_t i = start + kWidth * (threadIdx.x + u * kThreads);
            consider(value[u].x, i);
            consider(value[u].y, i + 1);
            consider(value[u].z, i + 2);
            consider(value[u].w, i + 3);
        }
    } else {
        for (size_t i = start + threadIdx.x; i < n; i += kThreads) {
            consider(source[i], i);
        }
    }
    return pack(best, at);
}
