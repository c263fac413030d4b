// The products of a stage: each thread multiplies the 8 elements that it normalised,
// which never leave its registers. A block computes at most 32 sums, and each thread
// contributes to each.
#pragma once
#include "output_stationary.cuh"

constexpr int kMostSums = 32;  // per block and convolution

// Parts of the sums: two buffers in turn for main convolutions, a third for residuals.
template <int kWidth>
__device__ __forceinline__ float (*parts_of_warps(int which))[kMostSums]
{
    __shared__ float parts[3][kTeams * kWidth / 32][kMostSums];
    return parts[which];
}

// Adds up kCount values over the lanes that differ in the bits kOffset to kLast. Each
// lane gets one of the sums: these bits, from the highest down, are its index.
template <int kCount, int kOffset, int kLast>
__device__ __forceinline__ float scatter_sums(float* value)
{
    if constexpr (kCount > 1) {
        const bool upper = threadIdx.x & kOffset;
#pragma unroll
        for (int i = 0; i < kCount / 2; ++i) {
            const float given = upper ? value[i] : value[i + kCount / 2];
            const float kept = upper ? value[i + kCount / 2] : value[i];
            value[i] = kept + __shfl_xor_sync(kAllLanes, given, kOffset);
        }
        return scatter_sums<kCount / 2, kOffset / 2, kLast>(value);
    } else {
#pragma unroll
        for (int offset = kOffset; offset >= kLast; offset /= 2) {
            value[0] += __shfl_xor_sync(kAllLanes, value[0], offset);
        }
        return value[0];
    }
}

constexpr int kFold = 16;  // the most sums that a warp reduces at once

// One thread's share of a stage's convolution. Two neighbouring threads share a row of
// 16 elements; otherwise a thread has one row of 8 or two rows of 4.
template <int kKind, int kLength, int kInputs, int kRows, int kWidth>
struct Own {
    static constexpr bool kShared = kLength == 16;
    static constexpr int kTaps = taps_of(kKind);
    static constexpr int kWeights = (kLength == 4 ? 2 : 1) * kTaps;  // per output
    static constexpr int kAfter = length_after(kKind, kLength) / (kShared ? 2 : 1);
    // Outputs that are reduced over a warp at once.
    static constexpr int kStep = kRows * kAfter <= kFold ? kRows
                                 : kAfter <= kFold       ? kFold / kAfter
                                                         : 1;
    // Outputs whose weights are in one slot.
    static constexpr int kChunk =
        kKind == kUp ? kRows
                     : chunk_rows_of({static_cast<Kind>(kKind), kInputs, 0, 0, 1, 0, 0,
                                      kRows},
                                     kWidth);
};

// The row's elements before and after a thread's own, from the neighbouring thread.
struct Halo {
    float before[2], after[2];
};

template <bool kShared>
__device__ __forceinline__ Halo halo_of(const float (&x)[8])
{
    Halo halo = {};
    if constexpr (kShared) {
        const bool second = threadIdx.x & 1;
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const float given = second ? x[i] : x[6 + i];
            const float taken = __shfl_xor_sync(kAllLanes, given, 1);
            halo.before[i] = second ? taken : 0.0f;
            halo.after[i] = second ? 0.0f : taken;
        }
    }
    return halo;
}

// Adds the products of a thread's elements and its weights of one output.
template <int kKind, int kLength, int kAfter>
__device__ __forceinline__ void multiply_own(float* sum, const float (&x)[8],
                                             const Halo& halo, const float* w)
{
    constexpr int kTaps = taps_of(kKind);
    if constexpr (kLength == 16) {
        constexpr int kStep = kKind == kDown ? 2 : 1;
#pragma unroll
        for (int t = 0; t < kTaps; ++t) {
#pragma unroll
            for (int i = 0; i < kAfter; ++i) {
                const int p = kStep * i + t - kTaps / 2;
                const float one = p < 0    ? halo.before[p < 0 ? 2 + p : 0]
                                  : p >= 8 ? halo.after[p >= 8 ? p - 8 : 0]
                                           : x[p >= 0 && p < 8 ? p : 0];
                sum[i] = fmaf(w[t], one, sum[i]);
            }
        }
    } else {
        constexpr int kEach = 8 / kLength;
#pragma unroll
        for (int each = 0; each < kEach; ++each) {
#pragma unroll
            for (int t = 0; t < kTaps; ++t) {
#pragma unroll
                for (int p = 0; p < kLength; ++p) {
                    const int twice = twice_after(kKind, p, t);
                    if (twice >= 0 && twice % 2 == 0 && twice / 2 < kAfter) {
                        sum[twice / 2] = fmaf(w[each * kTaps + t],
                                              x[each * kLength + p], sum[twice / 2]);
                    }
                }
            }
        }
    }
}

// A thread's elements of a stored tensor, which no other thread reads.
template <int kWidth>
__device__ __forceinline__ float4* stored_by(int tensor)
{
    return reinterpret_cast<float4*>(input_of<kWidth>(tensor)) + threadIdx.x;
}
template <int kWidth>
__device__ __forceinline__ void store(int tensor, const float (&value)[8])
{
    float4* to = stored_by<kWidth>(tensor);
    to[0] = make_float4(value[0], value[1], value[2], value[3]);
    to[kTeams * kWidth] = make_float4(value[4], value[5], value[6], value[7]);
}
template <int kWidth>
__device__ __forceinline__ void fetch(int tensor, float (&value)[8])
{
    const float4* from = stored_by<kWidth>(tensor);
    *reinterpret_cast<float4*>(value) = from[0];
    *reinterpret_cast<float4*>(value + 4) = from[kTeams * kWidth];
}

// Reduces the parts of some outputs over a warp, and stores the warp's sums.
template <typename Own, int kCount>
__device__ __forceinline__ void store_part(float* part, float (&sum)[kCount])
{
    constexpr int kLast = Own::kShared ? 2 : 1;
    constexpr int kAlike = 32 / kLast / kCount;  // lanes with the same sum
    const float total = scatter_sums<kCount, 16, kLast>(sum);
    const int lane = threadIdx.x % 32;
    int at = lane / kLast / kAlike;
    if constexpr (Own::kShared) {
        at = at / Own::kAfter * (2 * Own::kAfter) + lane % 2 * Own::kAfter +
             at % Own::kAfter;
    }
    if (lane / kLast % kAlike == 0) part[at] = total;
}

// This warp's part of the block's sums.
template <int kKind, int kLength, int kInputs, int kRows, int kWidth>
__device__ __forceinline__ void products_of_own(Ring& ring, int segments,
                                                const float (&value)[8], int skip,
                                                float (*parts)[kMostSums])
{
    using This = Own<kKind, kLength, kInputs, kRows, kWidth>;
    constexpr int kSums = This::kStep * This::kAfter;
    constexpr int kRow = kKind == kUp ? 4 * kWidth : kInputs * This::kTaps;
    constexpr int kSlotsUp = kInputs / kWidth;
    const bool active = threadIdx.x < kInputs * kLength / 8;
    const int channel = 8 * threadIdx.x / kLength;
    const int own = (kKind == kUp ? channel % kWidth : channel) * This::kTaps;
    float* part = parts[threadIdx.x / 32];
#pragma unroll 1
    for (int segment = 0; segment < (kKind == kUp ? 1 : segments); ++segment) {
        float x[8];
        if (segment == 0) {
#pragma unroll
            for (int i = 0; i < 8; ++i) x[i] = value[i];
        } else {
            fetch<kWidth>(skip, x);
        }
        const Halo halo = halo_of<This::kShared && kKind != kPoint>(x);
        const Weight* weights = nullptr;
        if constexpr (kKind == kUp) {
            // One slot per kWidth inputs, with the weights of all rows.
            Ring next = ring;
#pragma unroll
            for (int i = 0; i < kSlotsUp; ++i) {
                const Weight* slot = next.wait<kWidth>();
                if (channel / kWidth == i) weights = slot + own;
                next.advance();
            }
        }
#pragma unroll 1
        for (int first = 0; first < kRows; first += This::kStep) {
            float sum[kSums] = {};
#pragma unroll
            for (int i = 0; i < This::kStep; ++i) {
                const bool waits = This::kChunk <= This::kStep
                                       ? i % This::kChunk == 0
                                       : i == 0 && first % This::kChunk == 0;
                const bool ends = This::kChunk <= This::kStep
                                      ? (i + 1) % This::kChunk == 0
                                      : i + 1 == This::kStep &&
                                            (first + i + 1) % This::kChunk == 0;
                if (kKind != kUp && waits) weights = ring.wait<kWidth>() + own;
                if (active) {
                    float w[This::kWeights];
                    load<This::kWeights>(w, weights + i % This::kChunk * kRow);
                    multiply_own<kKind, kLength, This::kAfter>(
                        sum + i * This::kAfter, x, halo, w);
                }
                if (kKind != kUp && ends) ring.release();
            }
            if (This::kChunk > This::kStep) weights += This::kStep * kRow;
            if (active) {
                store_part<This>(part, sum);
            } else if (threadIdx.x % 32 < kSums) {
                part[threadIdx.x % 32] = 0.0f;
            }
            part += kSums * (This::kShared ? 2 : 1);
        }
    }
    if constexpr (kKind == kUp) {
#pragma unroll
        for (int i = 0; i < kSlotsUp; ++i) ring.release();
    }
}

constexpr int own_variant(int kind, int length, int inputs, int rows)
{
    return kind * 4096 + length * 128 + inputs * 16 + rows;
}
template <int kWidth>
__device__ __forceinline__ int own_variant(const Convolution& c)
{
    return own_variant(c.kind, c.length, c.inputs / c.segments / kWidth, c.rows);
}

// Convolves the block's input and, if there are two segments, a stored tensor: stores
// each warp's sums for each segment.
template <int kWidth>
__device__ __forceinline__ void all_products_of_own(Ring& ring, int variant,
                                                    int segments,
                                                    const float (&value)[8], int skip,
                                                    float (*parts)[kMostSums])
{
#define CASE(kind, length, inputs, rows)                                         \
    case own_variant(kind, length, inputs, rows):                                \
        products_of_own<kind, length, inputs * kWidth, rows, kWidth>(            \
            ring, segments, value, skip, parts);                                 \
        break
    switch (variant) {
        CASE(kSame, 16, 1, 2);
        CASE(kSame, 8, 1, 2);
        CASE(kSame, 8, 1, 4);
        CASE(kSame, 8, 2, 2);
        CASE(kSame, 8, 2, 4);
        CASE(kSame, 4, 2, 4);
        CASE(kSame, 4, 2, 8);
        CASE(kSame, 4, 4, 4);
        CASE(kSame, 4, 4, 8);
        CASE(kPoint, 16, 1, 2);
        CASE(kPoint, 8, 1, 4);
        CASE(kPoint, 8, 2, 2);
        CASE(kPoint, 4, 2, 8);
        CASE(kPoint, 4, 4, 4);
        CASE(kDown, 16, 1, 2);
        CASE(kDown, 8, 2, 4);
        CASE(kUp, 8, 1, 2);
        CASE(kUp, 4, 2, 4);
    }
#undef CASE
}

// The sum of all warps' parts; each warp has `count` parts per segment.
template <int kWidth>
__device__ __forceinline__ float sum_of_parts(
    const float (*parts)[kMostSums], int count, int segments)
{
    constexpr int kWarps = kTeams * kWidth / 32;
    float sum = 0.0f;
    for (int segment = 0; segment < segments; ++segment) {
#pragma unroll
        for (int warp = 0; warp < kWarps; ++warp) {
            sum += parts[warp][segment * count + threadIdx.x];
        }
    }
    return sum;
}
