// Idea: if a layer has too few tiles for the GPU, split its input maps over blocks.
// From the rung before: each layer has its own tile shape; a second pass adds the parts
// of an output, always in the same order.
// Requires: as direct; for the second pass blocks of kAddThreads threads, and kWidth =
// 4 only where it divides count.
#include "09_direct.cu"  // the kernel: its outputs are parts here
#include "add_parts.cuh"
