// A meeting of blocks that run at the same time. Its counter is ready for the next
// launch as soon as all have met: together they change its highest bit and no other.
#pragma once

// Returns what a block adds to the counter of `blocks` blocks; `first` in one of them.
__device__ __forceinline__ unsigned step_of_meeting(unsigned blocks, bool first)
{
    return first ? 0x80000000u - (blocks - 1) : 1;
}

// Waits until all blocks have added their step, where the counter was `before` while
// this block had not. Then all their writes before that are visible.
__device__ __forceinline__ void wait_for_meeting(unsigned* counter, unsigned before)
{
    unsigned now;
    do {
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
                     : "=r"(now)
                     : "l"(counter)
                     : "memory");
    } while ((before ^ now) >> 31 == 0);
}

// The counter before this block meets the others.
__device__ __forceinline__ unsigned look_at(unsigned* counter)
{
    unsigned now;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];"
                 : "=r"(now)
                 : "l"(counter)
                 : "memory");
    return now;
}

// One thread of each block calls this, after a barrier. The counter is not returned,
// because its way back would take as long as a look at it.
__device__ __forceinline__ void meet_others(
    unsigned* counter, unsigned before, unsigned blocks, bool first)
{
    const unsigned step = step_of_meeting(blocks, first);
    asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(counter), "r"(step)
                 : "memory");
    wait_for_meeting(counter, before);
}
