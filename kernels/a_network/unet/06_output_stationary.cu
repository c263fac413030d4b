// Idea: a block owns whole outputs, so its weights are contiguous in memory.
// From the rung before: no partial sums; one warp streams runs of 20 KB into a ring;
// FiLM values and residuals are computed while the block waits for other blocks.
// Requires: batch 1; width / 2 blocks of 2 * width + 32 threads, all resident at the
// same time; a launch of unet_empty before it.
using Weight = float;
#include "output_stationary.cuh"
