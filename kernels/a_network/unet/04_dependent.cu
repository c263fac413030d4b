// Idea: a launch starts while the one before it runs, and fetches its weights.
// From the rung before: launches with the attribute for it; weights are on their way to
// L2 before the wait.
// Requires: blocks of kThreads threads; for each launch what its kernel says.
constexpr bool kEarly = true;
#include "stages.cuh"
