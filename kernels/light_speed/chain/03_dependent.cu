// Idea: start each launch while the previous one runs, and let it wait on the GPU.
// From the rung before: programmatic dependent launch, in a graph as before.
// Requires: the same grid for all launches; all but the first with pdl.
constexpr bool kEarly = true;
#include "chain.cuh"
