// The products of a stage: the block's outputs, summed over all input channels.
#pragma once
#include "layers.cuh"
#include "ring.cuh"

// Two teams of kWidth threads divide up the rows of weights; a thread has the same
// channels in all of its rows.
constexpr int kTeams = 2;

template <int kWidth>
struct Held {
    Program program;
    alignas(16) float parts[kTeams][32][12];  // of the main or residual convolution
    float condition[kWidth + kObservation];
    float2 moments[kTeams * kWidth / 32];
};

template <int kWidth>
__device__ __forceinline__ Held<kWidth>& held()
{
    __shared__ Held<kWidth> of_block;
    return of_block;
}
// A stage's input, after the slots: the previous stage's result or a stored tensor.
template <int kWidth>
__device__ __forceinline__ float* input_of(int segment)
{
    return reinterpret_cast<float*>(slot<kWidth>(kSlots)) + segment * 16 * kWidth;
}

// Waits for all consumers.
template <int kWidth>
__device__ __forceinline__ void consumers_sync()
{
    asm volatile("bar.sync 1, %0;" ::"n"(kTeams * kWidth) : "memory");
}

// Waits for all consumers and the producer.
template <int kWidth>
__device__ __forceinline__ void block_sync()
{
    asm volatile("bar.sync 10, %0;" ::"n"(kTeams * kWidth + 32) : "memory");
}

// The index of quad q of a stage's input: lanes 4 or 2 quads apart use all banks.
__device__ __forceinline__ int swizzled(int q)
{
    return 4 * (q ^ (q >> 3 & 3));
}

// The work of one pass of products.
struct Task {
    int input;  // index of the input
    int which, first;  // the buffer of parts, and its first part
    int rows, chunk_rows;
};

template <int kKind, int kEach, int kLength, int kWidth>
__device__ __forceinline__ void products(Ring& ring, const Task& task)
{
    constexpr int kTaps = taps_of(kKind), kAfter = length_after(kKind, kLength);
    constexpr int kRow = kEach * kWidth * kTaps, kShare = 32 / kAfter;
    const int team = threadIdx.x / kWidth, member = threadIdx.x % kWidth;
    const int lane = threadIdx.x % 32, warp = member / 32;
    const float* input = input_of<kWidth>(task.input);
    float (*parts)[12] = held<kWidth>().parts[task.which] + task.first;
    float x[kEach][kLength];
#pragma unroll
    for (int i = 0; i < kEach * kLength / 4; ++i) {
        *reinterpret_cast<float4*>(&x[0][0] + 4 * i) =
            *reinterpret_cast<const float4*>(
                input + swizzled(member * (kEach * kLength / 4) + i));
    }
    int row = team;
#pragma unroll 1
    for (int first = 0; first < task.rows; first += task.chunk_rows) {
        const Weight* weights = ring.wait<kWidth>();
#pragma unroll 1
        for (; row < first + task.chunk_rows; row += kTeams) {
            float w[kEach * kTaps], sum[kAfter] = {};
            const Weight* from = weights + (row - first) * kRow;
            load<kEach * kTaps>(w, from + member * kEach * kTaps);
            multiply<kKind>(sum, x, w);
            const float total = fold<kAfter>(sum);
            if (lane % kShare == 0) {
                parts[row * kAfter + lane / kShare][warp] = total;
            }
        }
        ring.release();
    }
}

// A transposed convolution of kEach chunks of kWidth inputs each.
template <int kEach, int kLength, int kWidth>
__device__ __forceinline__ void products_up(Ring& ring, const Task& task)
{
    constexpr int kAfter = 2 * kLength, kShare = 32 / kAfter;
    const int team = threadIdx.x / kWidth, member = threadIdx.x % kWidth;
    const int lane = threadIdx.x % 32, warp = member / 32;
    const float* input = input_of<kWidth>(task.input);
    float (*parts)[12] = held<kWidth>().parts[task.which] + task.first;
    float x[kEach][kLength];
#pragma unroll
    for (int i = 0; i < kEach * kLength / 4; ++i) {
        *reinterpret_cast<float4*>(&x[0][0] + 4 * i) =
            *reinterpret_cast<const float4*>(
                input + swizzled(member * (kEach * kLength / 4) + i));
    }
    const Weight* weights = nullptr;
    Ring next = ring;
#pragma unroll
    for (int chunk = 0; chunk < kEach; ++chunk) {
        const Weight* slot = next.wait<kWidth>();
        if (member * kEach / kWidth == chunk) weights = slot;
        next.advance();
    }
    const int channel = member * kEach % kWidth;
#pragma unroll 1
    for (int row = team; row < task.rows; row += kTeams) {
        float w[kEach * 4], sum[kAfter] = {};
        load<kEach * 4>(w, weights + (row * kWidth + channel) * 4);
        multiply<kUp>(sum, x, w);
        const float total = fold<kAfter>(sum);
        if (lane % kShare == 0) {
            parts[row * kAfter + lane / kShare][warp] = total;
        }
    }
#pragma unroll
    for (int chunk = 0; chunk < kEach; ++chunk) {
        ring.release();
    }
}

constexpr int variant_of(int kind, int each, int length)
{
    return kind * 1000 + each * 100 + length;
}
// Inlined at its only call: a call would save registers on the stack, which has no room
// in L1 beside this much shared memory.
template <int kWidth>
__device__ __forceinline__ void products_of(int variant, Ring& ring,
                                            const Task& task)
{
#define CASE(kind, each, length)                                    \
    case variant_of(kind, each, length):                            \
        products<kind, each, length, kWidth>(ring, task); \
        break
#define CASE_UP(each, length)                                    \
    case variant_of(kUp, each, length):                          \
        products_up<each, length, kWidth>(ring, task); \
        break
    switch (variant) {
        CASE(kSame, 1, 16);
        CASE(kSame, 2, 8);
        CASE(kSame, 4, 4);
        CASE(kSame, 1, 8);
        CASE(kSame, 2, 4);
        CASE(kPoint, 1, 8);
        CASE(kPoint, 2, 4);
        CASE(kPoint, 4, 4);
        CASE(kPoint, 2, 8);
        CASE(kPoint, 1, 16);
        CASE(kDown, 1, 16);
        CASE(kDown, 2, 8);
        CASE_UP(2, 4);
        CASE_UP(1, 8);
    }
#undef CASE
#undef CASE_UP
}

// Convolves the block's input and, as a second segment, a stored tensor. Threads 0 to
// rows * length - 1 return the sums.
template <int kWidth>
__device__ __forceinline__ float convolve(Ring& ring, const Convolution& c, int stored,
                                          int which)
{
    const int after = length_after(c.kind, c.length), count = c.rows * after;
    const int variant =
        variant_of(c.kind, c.inputs / c.segments / kWidth, c.length);
#pragma unroll 1
    for (int segment = 0; segment < c.segments; ++segment) {
        products_of<kWidth>(variant, ring,
                            {segment == 0 ? 0 : 1 + stored, which, segment * count,
                             c.rows, chunk_rows_of(c, kWidth)});
    }
    consumers_sync<kWidth>();  // all warps have stored their parts
    float sum = 0.0f;
    if (threadIdx.x < count) {
        for (int segment = 0; segment < c.segments; ++segment) {
            const int from = segment * count + threadIdx.x;
            float parts[kWidth / 32];
            load<kWidth / 32>(parts, held<kWidth>().parts[which][from]);
#pragma unroll
            for (int warp = 0; warp < kWidth / 32; ++warp) sum += parts[warp];
        }
    }
    return sum;
}
