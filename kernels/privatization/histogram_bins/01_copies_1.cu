// Idea: one copy of the bins per block, for all lanes.
// From the rung before: nothing; this is the first rung.
// Requires: counts that are zero; values aligned to 16 bytes; a block of 1024 threads; a word of dynamic shared memory
// for each bin; values of kBins or more are not counted.
constexpr int kCopies = 1;
#include "copies.cuh"
