// Idea: a thread multiplies the elements that it has normalised.
// From the rung before: as unet's in_registers after streamed; weights are float16.
// Requires: batch 1; width / 2 blocks of 2 * width + 32 threads, all on the GPU at the
// same time; after a launch of unet_empty.
#include "halves.cuh"
using Weight = __half;
#include "../unet/in_registers.cuh"
