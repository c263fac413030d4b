// Idea: the report's conv1 in its own type, whole numbers of 32 bits: a piece of one input map for every output map.
// From the rung before: nothing, this is the first rung; the source is that of the float32 ladder.
// Requires: blocks of 784 threads; outputs that clear has set to zero.
#include "../convlayer/01_map_atomics.cu"
