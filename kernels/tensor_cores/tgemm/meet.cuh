// A barrier for blocks that run at the same time. Blocks with consecutive numbers do,
// because blocks start in the order of their numbers.
#pragma once

// One thread of each of `blocks` blocks calls this, after a barrier of its block. All
// blocks' earlier writes are visible afterwards. The counter starts at zero.
__device__ __forceinline__ void meet(unsigned* counter, unsigned blocks)
{
    __threadfence();
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(counter) : "memory");
    unsigned count;
    do {
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
                     : "=r"(count)
                     : "l"(counter)
                     : "memory");
    } while (count < blocks);
}
