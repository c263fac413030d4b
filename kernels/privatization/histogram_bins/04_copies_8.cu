// Idea: eight copies of the bins, each shared by four lanes of a warp.
// From the rung before: eight copies in twice as many bytes of shared memory.
// Requires: counts set to zero; values aligned to 16 bytes; a block of 1024 threads; 8
// words of dynamic shared memory for each bin; values of kBins or more are not counted.
constexpr int kCopies = 8;
#include "copies.cuh"
