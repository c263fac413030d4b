// Idea: SMs that would only wait for the last round of tiles stay idle altogether.
// From the rung before: the same kernels. The grid has as few clusters as need no more
// rounds than all SMs would: 128 blocks instead of 132 for 512 tiles.
// Requires: what hgemm_small_tiles requires.
#include "small.cuh"
