// Idea: where a layer has fewer tiles than the GPU has room for, its input maps are split over blocks as well.
// From the rung before: each layer has a cut of its own; a second pass adds the parts of an output, always in one order.
// Requires: as direct.cu; for the second pass blocks of kAddThreads threads, and kWidth = 4 only where it divides count.
#include "09_direct.cu"  // the kernel, whose outputs are parts here
#include "add_parts.cuh"
