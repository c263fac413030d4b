// Idea: start each launch while the previous one runs, and prefetch its weights.
// From the rung before: programmatic dependent launch; weights are prefetched into L2
// before the wait for the previous launch.
// Requires: blocks of kThreads threads; grids as noted at each kernel.
constexpr bool kEarly = true;
#include "stages.cuh"
