// Idea: the rung `shuffle` of the ladder conv2d, on images of other sizes.
// From the rung before: lanes pass on the pixels of a row.
// Requires: as in conv2d.
#include "../conv2d/05_shuffle.cu"
