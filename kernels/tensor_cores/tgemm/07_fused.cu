// Idea: A is split in registers on its way to the tensor cores, and each part of B is
// read once for all products it is in.
// From the rung before: no parts of A in memory, and none of B transposed; a producer
// warp, two consumers of 64 x 256 sums, clusters that share B, persistent blocks.
// Requires: sm_90a.
#include "fused.cuh"
#include "two_passes.cuh"
