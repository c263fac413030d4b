// Idea: put the same launches into one CUDA graph, which the host starts with one call.
// From the rung before: only how the launches are started.
// Requires: the same grid for all launches.
#include "chain.cuh"
