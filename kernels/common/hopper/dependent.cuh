// Programmatic dependent launch (sm_90): a kernel launched with this attribute may
// start while the previous kernel in the stream is still running.
#pragma once

// Lets the next launch start once every block has called this or has ended.
__device__ __forceinline__ void start_next_launch()
{
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

// Waits until the previous launch has ended and its writes are visible. Without the
// attribute, it has already ended.
__device__ __forceinline__ void wait_for_launch_before()
{
    asm volatile("griddepcontrol.wait;" ::: "memory");
}
