// Copies from global to shared memory that go past the registers and arrive while their thread does other things.
// With wanted = false nothing is read and zeros arrive. Before sm_80 there are none: a load and a store stand in.
#pragma once

__device__ __forceinline__ unsigned shared_address(const void* pointer)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

template <int kFloats>
__device__ __forceinline__ void copy_async(float* to, const float* from, bool wanted)
{
    static_assert(kFloats == 1 || kFloats == 4, "one float or a quad");
    constexpr int kBytes = 4 * kFloats;
#if __CUDA_ARCH__ >= 800
    const int bytes = wanted ? kBytes : 0;
    if constexpr (kFloats == 4) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], %2, %3;" ::"r"(shared_address(to)), "l"(from), "n"(kBytes),
                     "r"(bytes) : "memory");
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared_address(to)), "l"(from), "n"(kBytes),
                     "r"(bytes) : "memory");
    }
#else
    if constexpr (kFloats == 4) {
        *reinterpret_cast<float4*>(to) = wanted ? *reinterpret_cast<const float4*>(from) : float4{};
    } else {
        *to = wanted ? *from : 0.0f;
    }
#endif
}

// Closes the group of this thread's copies since the last call.
__device__ __forceinline__ void close_group()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits until at most kOpen of this thread's groups have not arrived.
template <int kOpen>
__device__ __forceinline__ void wait_for_groups()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(kOpen) : "memory");
#endif
}
