// Idea: products that would leave SMs idle take smaller tiles.
// From the rung before: a block for each tile of 64 x 128; each block that splits B has
// whole columns, so that none waits for another.
// Requires: sm_90a.
#include "one_block.cuh"
#include "small.cuh"
