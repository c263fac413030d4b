// The products of a stage: one convolution over the block's group of inputs, whose
// partial sums go to the other blocks.
#pragma once
#include "block.cuh"

// Convolves kInputs inputs of each segment. A lane keeps the rows of kEach inputs in
// registers; a warp loops over its own outputs.
template <int kKind, int kInputs, int kLength, int kSegments>
__device__ __noinline__ Stream convolve(Stream stream, int rows, float* sums,
                                        const float (*inputs)[640])
{
    constexpr int kEach = kInputs > 32 ? kInputs / 32 : 1;
    constexpr int kTaps = taps_of(kKind);
    constexpr int kAfter = length_after(kKind, kLength);
    constexpr bool kApart = kKind == kUp;  // a lane's inputs are 32 apart
    const int lane = threadIdx.x % 32;
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
                        inputs[segment] + padded(input * kLength + p));
                }
                *reinterpret_cast<float4*>(&x[segment][each][p]) = four;
            }
        }
    }
    for (int row = threadIdx.x / 32; row < rows; row += kWarps) {
        float sum[kAfter] = {};
#pragma unroll
        for (int segment = 0; segment < kSegments; ++segment) {
            float w[kEach * kTaps] = {};
            const float* weights = stream.wait();
            if (busy) {
                if constexpr (kApart) {
#pragma unroll
                    for (int each = 0; each < kEach; ++each) {
                        load<4>(w + each * 4, weights + (lane + each * 32) * 4);
                    }
                } else {
                    load<kEach * kTaps>(w, weights + lane * kEach * kTaps);
                }
            }
            stream.release();
            multiply<kKind>(sum, x[segment], w);
        }
        const float total = fold<kAfter>(sum);
        if (lane % (32 / kAfter) == 0) {
            hand_over(sums + row * kAfter + lane / (32 / kAfter), total);
        }
    }
    return stream;
}

template <int kWidth>
__device__ Stream convolve_any(const Stream& stream, const Convolution& c,
                               Place<kWidth> place, const float (*inputs)[640],
                               float* exchange)
{
    constexpr int kOne = kWidth / kGroups, kTwo = 2 * kOne, kFour = 4 * kOne;
    const int rows = c.outputs == kAction && place.slice > 0 ? 0 : c.rows;
    float* sums = exchange + c.sums +
                  (place.group * c.outputs + place.slice * c.rows) *
                      length_after(c.kind, c.length);
    const int wide = c.inputs / (c.segments * kWidth);  // 1, 2 or 4
    const int code = c.kind * 1000 + wide * 100 + c.segments * 50 + c.length;
#define CASE(kind, count, length, segments)                         \
    case kind * 1000 + count / kOne * 100 + segments * 50 + length: \
        return convolve<kind, count, length, segments>(stream, rows, sums, inputs)
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
