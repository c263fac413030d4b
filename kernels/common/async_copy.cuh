// Copies from global to shared memory that bypass the registers (cp.async, sm_80). The
// thread continues, and waits later. Before sm_80, a load and a store replace a copy.
#pragma once

__device__ __forceinline__ unsigned shared_address(const void* pointer)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

// Starts a copy of one float or of four. With wanted = false, the source is not read
// and zeros arrive.
template <int kFloats>
__device__ __forceinline__ void copy_async(float* to, const float* from, bool wanted)
{
    static_assert(kFloats == 1 || kFloats == 4, "one float or a quad");
    constexpr int kBytes = 4 * kFloats;
#if __CUDA_ARCH__ >= 800
    const int bytes = wanted ? kBytes : 0;
    if constexpr (kFloats == 4) {
        asm volatile(
            "cp.async.cg.shared.global [%0], [%1], %2, %3;" ::"r"(shared_address(to)),
            "l"(from), "n"(kBytes), "r"(bytes)
            : "memory");
    } else {
        asm volatile(
            "cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared_address(to)),
            "l"(from), "n"(kBytes), "r"(bytes)
            : "memory");
    }
#else
    if constexpr (kFloats == 4) {
        *reinterpret_cast<float4*>(to) =
            wanted ? *reinterpret_cast<const float4*>(from) : float4{};
    } else {
        *to = wanted ? *from : 0.0f;
    }
#endif
}

// Closes the group of copies that this thread started since the last call.
__device__ __forceinline__ void close_group()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits until at most kOpen of this thread's groups are still in flight.
template <int kOpen>
__device__ __forceinline__ void wait_for_groups()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(kOpen) : "memory");
#endif
}

// Waits until all copies of this thread have arrived.
__device__ __forceinline__ void wait_for_copies()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

// Starts a copy of one float or of four, unconditionally.
template <int kFloats>
__device__ __forceinline__ void copy_async(float* to, const float* from)
{
    static_assert(kFloats == 1 || kFloats == 4, "one float or a quad");
#if __CUDA_ARCH__ >= 800
    if constexpr (kFloats == 4) {
        asm volatile(
            "cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)),
            "l"(from)
            : "memory");
    } else {
        asm volatile(
            "cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_address(to)),
            "l"(from)
            : "memory");
    }
#else
    copy_async<kFloats>(to, from, true);
#endif
}
