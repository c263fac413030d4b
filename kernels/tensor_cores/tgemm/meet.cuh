// Blocks that wait for each other. They must be on the GPU at the same time: blocks
// start in the order of their numbers, so those of neighbouring numbers are.
#pragma once

// One thread of each of `blocks` blocks calls this, after a barrier of its block. What
// the blocks wrote before, all can read after. The counter is zero at first.
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
