// Idea: a thread owns one output, a 32-bit integer, and stores its sum once.
// From the rung before: no atomics and no clearing; the source is that of the float32
// ladder.
// Requires: blocks of 128 threads.
#include "../convlayer/03_output_stationary.cu"
