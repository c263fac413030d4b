// Idea: for few rows of A the bytes of B are the limit, so they are read just once.
// From the rung before: nothing is prepared. Each warp has boxes of its own, splits
// them to TF32 in registers, which needs no scales, and multiplies with mma.sync.
// Requires: sm_90a.
#include "few.cuh"
