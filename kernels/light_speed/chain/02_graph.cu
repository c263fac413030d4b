// Idea: the same launches as one graph, which the GPU starts without the host.
// From the rung before: how the launches are started.
// Requires: the same grid for all launches.
constexpr bool kEarly = false;
#include "chain.cuh"
