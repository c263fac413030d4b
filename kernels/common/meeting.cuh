// A meeting of blocks that run at the same time. Its counter is ready for the next
// launch as soon as all have met: together they change its highest bit and no other.
#pragma once

// The counter before this block meets the others: they need it for its highest bit.
__device__ __forceinline__ unsigned look_at(unsigned* counter)
{
    unsigned now;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];"
                 : "=r"(now)
                 : "l"(counter)
                 : "memory");
    return now;
}

// One thread of each of `blocks` blocks calls this, after a barrier; `first` in one of
// them. Then all blocks' earlier writes are visible. The counter is not returned,
// because its way back would take as long as a look at it.
__device__ __forceinline__ void meet_others(
    unsigned* counter, unsigned before, unsigned blocks, bool first)
{
    const unsigned step = first ? 0x80000000u - (blocks - 1) : 1;
    asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(counter), "r"(step)
                 : "memory");
    unsigned now;
    do {
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
                     : "=r"(now)
                     : "l"(counter)
                     : "memory");
    } while ((before ^ now) >> 31 == 0);
}
