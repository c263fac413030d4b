// Programmatic dependent launch (sm_90): a kernel that is launched with the attribute
// for it starts while the kernel before it in the stream still runs.
#pragma once

// Lets the next launch start once every block has called this or has ended.
__device__ __forceinline__ void start_next_launch()
{
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

// Waits until the launch before this one has ended and its writes can be read. Without
// the attribute it has ended already.
__device__ __forceinline__ void wait_for_launch_before()
{
    asm volatile("griddepcontrol.wait;" ::: "memory");
}
