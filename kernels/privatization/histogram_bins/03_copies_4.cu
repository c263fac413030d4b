// Idea: four copies of the bins, each shared by eight lanes of a warp.
// From the rung before: four copies in twice as many bytes of shared memory.
// Requires: counts set to zero; values aligned to 16 bytes; a block of 1024 threads; 4
// words of dynamic shared memory for each bin; values of kBins or more are not counted.
constexpr int kCopies = 4;
#include "copies.cuh"
