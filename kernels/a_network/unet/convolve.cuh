// The products of a stage: one convolution of a block's group of inputs, with weights
// from the ring; the sums of the group are handed over.
#pragma once
#include "block.cuh"

// One convolution of this block's group of inputs, kInputs of each segment. A lane
// has kEach of them, and its rows of them in registers; a warp goes through outputs.
template <int kWidth, Kind kKind, int kInputs, int kLength, int kSegments>
__device__ __noinline__ int convolve(Ring ring, const Convolution& c,
                                     Place<kWidth> place, const float (*rows)[640],
                                     float* exchange)
{
    constexpr int kEach = kInputs > 32 ? kInputs / 32 : 1;
    constexpr int kTaps = taps_of(kKind);
    constexpr int kAfter = length_after(kKind, kLength);
    constexpr bool kApart = kKind == kUp;  // a lane's inputs are 32 apart
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const bool busy = lane < kInputs;
    float x[kSegments][kEach][kLength];
#pragma unroll
    for (int segment = 0; segment < kSegments; ++segment) {
#pragma unroll
        for (int each = 0; each < kEach; ++each) {
            const int input = kApart ? lane + each * 32 : lane * kEach + each;
#pragma unroll
            for (int p = 0; p < kLength; p += 4) {
                float4 four = {};
                if (busy) {
                    four = *reinterpret_cast<const float4*>(
                        rows[segment] + padded(input * kLength + p));
                }
                *reinterpret_cast<float4*>(&x[segment][each][p]) = four;
            }
        }
    }
    float* sums =
        exchange + c.sums + (place.group * c.outputs + place.slice * c.rows) * kAfter;
    const int rows_a_chunk = c.rows_a_chunk, all_rows = c.rows;
    int row = warp;
    for (int first = 0; first < all_rows; first += rows_a_chunk) {
        const int end = min(first + rows_a_chunk, all_rows);
        const float* weights = ring.wait();
        for (; row < end; row += kWarps) {
            float sum[kAfter] = {};
#pragma unroll
            for (int segment = 0; segment < kSegments; ++segment) {
                float w[kEach * kTaps] = {};
                if constexpr (kKind == kUp) {
#pragma unroll
                    for (int each = 0; each < kEach; ++each) {
                        if (busy) {
                            load<4>(w + each * 4,
                                    weights +
                                        (lane + each * 32) * (rows_a_chunk * 4 + 4) +
                                        (row - first) * 4);
                        }
                    }
                } else if (busy) {
                    load<kEach * kTaps>(
                        w, weights +
                               ((row - first) * kSegments + segment) * kInputs * kTaps +
                               lane * kEach * kTaps);
                }
                multiply<kKind>(sum, x[segment], w);
            }
            const float total = fold<kAfter>(sum);
            if (lane % (32 / kAfter) == 0) {
                hand_over(sums + row * kAfter + lane / (32 / kAfter), total);
            }
        }
        ring.release();
    }
    return ring.turn;
}

template <int kWidth>
__device__ int convolve_any(const Ring& ring, const Convolution& c, Place<kWidth> place,
                            const float (*rows)[640], float* exchange)
{
    constexpr int kOne = kWidth / kGroups, kTwo = 2 * kOne, kFour = 4 * kOne;
    const int inputs = c.inputs / (kGroups * c.segments);
    const int code = c.kind * 1000 + inputs / kOne * 100 + c.segments * 50 + c.length;
#define CASE(kind, count, length, segments)                                          \
    case kind * 1000 + count / kOne * 100 + segments * 50 + length:                  \
        return convolve<kWidth, kind, count, length, segments>(ring, c, place, rows, \
                                                               exchange)
    switch (code) {
        CASE(kSame, kOne, 16, 1);
        CASE(kSame, kTwo, 8, 1);
        CASE(kSame, kFour, 4, 1);
        CASE(kSame, kOne, 8, 1);
        CASE(kSame, kTwo, 4, 1);
        CASE(kSame, kFour, 4, 2);
        CASE(kSame, kTwo, 8, 2);
        CASE(kPoint, kOne, 8, 1);
        CASE(kPoint, kTwo, 4, 1);
        CASE(kPoint, kFour, 4, 2);
        CASE(kPoint, kTwo, 8, 2);
        CASE(kPoint, kOne, 16, 1);
        CASE(kDown, kOne, 16, 1);
        CASE(kDown, kTwo, 8, 1);
        CASE(kUp, kTwo, 4, 1);
        CASE(kUp, kOne, 8, 1);
    }
#undef CASE
    __trap();
}
