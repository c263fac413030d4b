// Idea: start each launch while the previous one runs, and let it wait on the GPU.
// From the rung before: programmatic dependent launch, in a graph as before.
// Requires: the same grid for all launches; all but the first with pdl.
#include "../../common/hopper/dependent.cuh"

// `from` is not restrict: the previous launch may still be writing there.
__global__ void chain_step(const int* from, int* to, int step)
{
    start_next_launch();
    wait_for_launch_before();
    if (threadIdx.x == 0) {
        to[blockIdx.x] = step == 0 ? 1 : from[(blockIdx.x + 1) % gridDim.x] + 1;
    }
}
