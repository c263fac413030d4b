// Idea: what a thread has normalised stays in its registers, and it multiplies that.
// From the rung before: no input in shared memory, and no barrier before the products;
// what a stage needs besides its sums is looked up while the block waits for them.
// Requires: batch 1; width / 2 blocks of 2 * width + 32 threads, all on the GPU at the
// same time; after a launch of unet_empty.
using Weight = float;
#include "in_registers.cuh"
