// Idea: conv1 of the course report in its own type: 32-bit integers.
// From the rung before: this is the first rung; the source is that of the float32
// ladder.
// Requires: blocks of 784 threads; outputs that convlayer_clear has set to zero.
#include "../convlayer/01_map_atomics.cu"
