// The warps of the rungs that make halves in shared memory.
#pragma once

constexpr int kChain = 2;   // steps whose products tensor cores add up
constexpr int kGroups = 2;  // warpgroups that multiply
constexpr int kGroupThreads = 128;
constexpr int kConsumers = kGroups * kGroupThreads;
constexpr int kConsumerWarps = kConsumers / kWarp;
constexpr int kGroupWarps = kGroupThreads / kWarp;
constexpr int kPixelWarps = 7;  // one more warp starts the copies
constexpr int kThreads = kConsumers + (1 + kPixelWarps) * kWarp;

// A barrier for all threads that multiply.
__device__ __forceinline__ void sync_consumers()
{
    asm volatile("bar.sync 1, %0;" ::"n"(kConsumers) : "memory");
}
