// Idea: launch only as many blocks as fill all rounds of tiles evenly.
// From the rung before: the same kernels. The grid has the fewest clusters that take no
// more rounds than a full grid: 128 blocks instead of 132 for 512 tiles.
// Requires: what hgemm_small_tiles requires.
#include "small.cuh"
