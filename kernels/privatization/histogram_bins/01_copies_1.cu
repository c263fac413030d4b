// Idea: one copy of the bins per block, for all lanes.
// From the rung before: the first rung.
// Requires: counts set to zero; values aligned to 16 bytes; a block of 1024 threads;
// one word of dynamic shared memory for each bin; values of kBins or more are not
// counted.
constexpr int kCopies = 1;
#include "copies.cuh"
