// Programmatic dependent launch (sm_90): a kernel launched with this attribute may
// start while the previous kernel in the stream is still running.
#pragma once

// Lets the next launch start once every block has called this or has ended.
__device__ __forceinline__ void start_next_launch()
{
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

// Waits until the previous launch has ended and its writes are visible. Without the
// attribute, it has already ended. A pointer to what that launch writes must not be
// `const` and `__restrict__`: the compiler then takes the memory for read-only
// (ld.global.nc) and may read it before the wait.
__device__ __forceinline__ void wait_for_launch_before()
{
    asm volatile("griddepcontrol.wait;" ::: "memory");
}
