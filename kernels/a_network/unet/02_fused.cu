// Idea: a convolution does the norm, Mish, FiLM and residual before it, in registers.
// From the rung before: a kernel for each convolution; a warp for each group of a norm.
// Requires: blocks of kThreads threads; for each launch what its kernel says.
constexpr bool kEarly = false;
#include "stages.cuh"
