// Values that blocks pass to each other through global memory, without a flag and
// without a fence: a value has arrived once it differs from kEmpty.
#pragma once

// A NaN that no operation returns: the GPU's own NaN is 0x7fffffff.
constexpr unsigned kEmpty = 0xffffffffu;

__device__ __forceinline__ void hand_over(float* to, float value)
{
    unsigned bits = __float_as_uint(value);
    if (bits == kEmpty) bits = 0x7fffffffu;
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(to), "r"(bits) : "memory");
}

// Reloads those of kCount values, `stride` apart, that have not arrived yet.
template <int kCount>
__device__ __forceinline__ void look(unsigned (&bits)[kCount], const float* from,
                                     int stride)
{
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
        asm volatile(
            "{\n"
            ".reg .pred empty;\n"
            "setp.eq.u32 empty, %0, 0xffffffff;\n"
            "@empty ld.relaxed.gpu.global.u32 %0, [%1];\n"
            "}"
            : "+r"(bits[i])
            : "l"(from + i * stride)
            : "memory");
    }
}

template <int kCount>
__device__ __forceinline__ bool complete(const unsigned (&bits)[kCount])
{
    bool all = true;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
        all = all && bits[i] != kEmpty;
    }
    return all;
}

template <int kCount>
__device__ __forceinline__ float sum_of(const unsigned (&bits)[kCount])
{
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
        sum += __uint_as_float(bits[i]);
    }
    return sum;
}

// The sum of kCount values, `stride` apart, as soon as all have arrived.
template <int kCount>
__device__ __forceinline__ float await_sum(const float* from, int stride)
{
    unsigned bits[kCount];
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
        bits[i] = kEmpty;
    }
    do {
        look(bits, from, stride);
    } while (!complete(bits));
    return sum_of(bits);
}
__device__ __forceinline__ float await(const float* from)
{
    return await_sum<1>(from, 0);
}

// Sets all values to kEmpty, in a separate launch before the kernel that uses them.
__global__ void unet_empty(float* __restrict__ places, int quads)
{
    start_next_launch();
    const int threads = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < quads; i += threads) {
        reinterpret_cast<uint4*>(places)[i] =
            make_uint4(kEmpty, kEmpty, kEmpty, kEmpty);
    }
}
