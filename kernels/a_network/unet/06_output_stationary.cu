// Idea: a block owns whole outputs, whose weights lie in one run of memory.
// From the rung before: no partial sums; one warp streams runs of 20 KB into a ring;
// FiLM's values and residuals are summed while the block waits for the others.
// Requires: batch 1; width / 2 blocks of 2 * width + 32 threads, all on the GPU at the
// same time; after a launch of unet_empty.
using Weight = float;
#include "output_stationary.cuh"
