// Idea: half of the bytes.
// From the rung before: the first rung. It is unet's output_stationary; weights are
// stored as float16, and all sums stay float32.
// Requires: batch 1; width / 2 blocks of 2 * width + 32 threads, all on the GPU at the
// same time; after a launch of unet_empty.
#include "halves.cuh"
using Weight = __half;
#include "../unet/output_stationary.cuh"
