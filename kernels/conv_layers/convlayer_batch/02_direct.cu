// Idea: a window of inputs in registers serves all taps, for every image of a batch.
// From the rung before: the kernel `direct` of the ladder for one image. It can split
// the input maps into parts; here each part is an image, whose sums are outputs.
// Requires: as direct, and c_in a multiple of 8, because a part holds whole stages.
#include "../convlayer/09_direct.cu"
#include "repeat.cuh"
