// Idea: fuse norm, Mish, FiLM and residual into the convolution that follows them.
// From the rung before: one kernel per convolution; one warp per normalisation group.
// Requires: blocks of kThreads threads; grids as noted at each kernel.
constexpr bool kEarly = false;
#include "stages.cuh"
