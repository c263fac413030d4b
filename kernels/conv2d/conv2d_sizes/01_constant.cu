// Idea: the rung `constant` of the ladder conv2d, on images of other sizes.
// From the rung before: this is the first rung.
// Requires: as in conv2d.
#include "../conv2d/02_constant.cu"
