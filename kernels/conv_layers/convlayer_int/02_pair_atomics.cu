// Idea: the report's conv2 in its own type, whole numbers of 32 bits: a block for each pair of maps.
// From the rung before: the loop over output maps has become blocks; the source is that of the float32 ladder.
// Requires: blocks of 196 threads; outputs that clear has set to zero.
#include "../convlayer/02_pair_atomics.cu"
