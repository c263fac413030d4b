// Idea: the rung `tiled` of the ladder conv2d, on images of other sizes.
// From the rung before: pixels come from a tile in shared memory.
// Requires: as in conv2d.
#include "../conv2d/03_tiled.cu"
