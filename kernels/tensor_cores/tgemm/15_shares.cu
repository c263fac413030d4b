// Idea: blocks that meet in memory need not be neighbours, so nearly all SMs have one.
// From the rung before: the GPU has room for fewer clusters of eight blocks than it has
// SMs for, so 28 of 132 SMs had nothing to do. Here a tile has 256 columns, and its
// eight blocks are in no cluster: they write their sums to memory, wait for each other,
// and each adds up an eighth.
// Requires: sm_90a; at least eight SMs, and blocks that start in the order of their
// numbers, as they do; one launch at a time, because launches share the counters.
#include "shares.cuh"
