// Idea: one launch per step, each of which waits for the end of the previous one.
// From the rung before: the first rung.
// Requires: the same grid for all launches.
#include "chain.cuh"
