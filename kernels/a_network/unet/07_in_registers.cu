// Idea: a thread keeps the elements it normalised in registers and multiplies those.
// From the rung before: no input in shared memory, and no barrier before the products;
// a stage loads everything except its sums while the block waits for those.
// Requires: batch 1; width / 2 blocks of 2 * width + 32 threads, all resident at the
// same time; a launch of unet_empty before it.
using Weight = float;
#include "in_registers.cuh"
