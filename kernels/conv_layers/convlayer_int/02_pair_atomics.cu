// Idea: conv2 of the course report in its own type: one block per pair of maps.
// From the rung before: blocks instead of the loop over output maps; the source is that
// of the float32 ladder.
// Requires: blocks of 196 threads; outputs that convlayer_clear has set to zero.
#include "../convlayer/02_pair_atomics.cu"
