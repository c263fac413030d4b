// Idea: a launch starts while the one before it runs, and waits on the GPU.
// From the rung before: launches with the attribute for it, in a graph as before.
// Requires: the same grid for all launches; all but the first with pdl.
constexpr bool kEarly = true;
#include "chain.cuh"
