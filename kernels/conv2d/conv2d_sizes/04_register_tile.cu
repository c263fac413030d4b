// Idea: the rung `register_tile` of the ladder conv2d, on other sizes.
// From the rung before: 4 x 8 outputs per thread in registers, no tile.
// Requires: as in conv2d.
#include "../conv2d/08_register_tile.cu"
