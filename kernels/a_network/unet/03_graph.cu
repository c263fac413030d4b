// Idea: put all launches into one CUDA graph, so the host starts them with one call.
// From the rung before: the same kernels, launched from a graph instead of a stream.
// Requires: blocks of kThreads threads; grids as noted at each kernel.
constexpr bool kEarly = false;
#include "stages.cuh"
