// Idea: A is split in registers, and each part of B is read once for all its products.
// From the rung before: A stays float32 in memory and B's parts are not transposed; a
// producer warp, two consumers of 64 x 256 sums, clusters that share B, and persistent
// blocks.
// Requires: sm_90a.
#include "fused.cuh"
#include "two_passes.cuh"
