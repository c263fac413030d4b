// Shared by both rungs: floats as integers of the same order, and the largest key of a
// thread, of a warp and of a block. The file that includes this defines kThreads,
// kUnroll and kChunk.
#pragma once

constexpr int kWarp = 32;
constexpr int kWarps = kThreads / kWarp;
constexpr unsigned kAllLanes = 0xffffffffu;
static_assert(
    kThreads % kWarp == 0 && kWarps <= kWarp,
    "whole warps, and no more than one warp can compare");
constexpr int kLeast = 0x80000000;  // below the key of every float
// Above the key of every float; these are the bits of a NaN.
constexpr int kNan = 0x7fffffff;

// Maps a float to an integer of the same order: a larger float has a larger key, and a
// NaN has the largest of all.
__device__ int key_of(float value)
{
    const int bits = __float_as_int(value);
    if ((bits & 0x7fffffff) > 0x7f800000) {
        return kNan;
    }
    return bits >= 0 ? bits : bits ^ 0x7fffffff;
}

__device__ float float_of(int key)
{
    return __int_as_float(key >= 0 ? key : key ^ 0x7fffffff);
}

// The largest of the warp's values, in lane 0. Every lane of the warp must call it.
__device__ int warp_max(int value)
{
    for (int offset = kWarp / 2; offset > 0; offset /= 2) {
        value = max(value, __shfl_down_sync(kAllLanes, value, offset));
    }
    return value;
}

// The largest of the block's values, in thread 0. Every thread of the block must call
// it.
__device__ int block_max(int value)
{
    __shared__ int partial[kWarps];
    const int lane = threadIdx.x % kWarp;
    const int warp = threadIdx.x / kWarp;
    value = warp_max(value);
    if (lane == 0) {
        partial[warp] = value;
    }
    __syncthreads();  // every warp has stored its result before the first warp reads
    if (warp == 0) {
        value = warp_max(lane < kWarps ? partial[lane] : kLeast);
    }
    return value;
}

// The largest key among this thread's floats of the block's chunk.
__device__ int thread_max(const float* __restrict__ source, size_t n)
{
    const size_t start = static_cast<size_t>(blockIdx.x) * kChunk;
    int largest = kLeast;
    if (start + kChunk <= n) {
        const float4* quads = reinterpret_cast<const float4*>(source + start);
        float4 value[kUnroll];
#pragma unroll
        for (int u = 0; u < kUnroll; ++u) {
            value[u] = quads[threadIdx.x + u * kThreads];
        }
#pragma unroll
        for (int u = 0; u < kUnroll; ++u) {
            largest = max(largest, max(max(key_of(value[u].x), key_of(value[u].y)),
                                       max(key_of(value[u].z), key_of(value[u].w))));
        }
    } else {
        for (size_t i = start + threadIdx.x; i < n; i += kThreads) {
            largest = max(largest, key_of(source[i]));
        }
    }
    return largest;
}
