// Idea: one launch does all steps, with a grid-wide barrier between them.
// From the rung before: a counter that each block increments and polls in each step.
// Requires: all blocks resident at the same time; a launch of chain_start before it.
#include "start.cuh"

#include "../../tensor_cores/tgemm/meet.cuh"

__global__ void chain_barrier(int* counts, int* other, unsigned* arrived, int steps)
{
    wait_for_launch_before();
    for (int step = 1; step < steps; ++step) {
        int* from = step % 2 == 1 ? counts : other;
        int* to = step % 2 == 1 ? other : counts;
        if (threadIdx.x == 0) {
            to[blockIdx.x] = __ldcg(from + (blockIdx.x + 1) % gridDim.x) + 1;
            meet(arrived, step * gridDim.x);  // all blocks have written
        }
        __syncthreads();  // as in a kernel whose other threads have work too
    }
    if (steps % 2 == 0 && threadIdx.x == 0) counts[blockIdx.x] = other[blockIdx.x];
}
