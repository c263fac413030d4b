// Idea: half the bytes, with weights in float16.
// From the rung before: the first rung. It is unet's output_stationary with weights
// stored as float16; all sums stay float32.
// Requires: batch 1; width / 2 blocks of 2 * width + 32 threads, all resident at the
// same time; a launch of unet_empty before it.
#include "halves.cuh"
using Weight = __half;
#include "../unet/output_stationary.cuh"
