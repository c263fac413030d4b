// Idea: all launches as one graph, which the GPU starts without the host.
// From the rung before: how the same launches are started.
// Requires: blocks of kThreads threads; for each launch what its kernel says.
constexpr bool kEarly = false;
#include "stages.cuh"
