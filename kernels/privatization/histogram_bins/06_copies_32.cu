// Idea: 32 copies of the bins, one per lane, each in a bank of its own.
// From the rung before: 32 copies in twice as many bytes of shared memory.
// Requires: counts set to zero; values aligned to 16 bytes; a block of 1024 threads; 32
// words of dynamic shared memory for each bin; values of kBins or more are not counted.
constexpr int kCopies = 32;
#include "copies.cuh"
