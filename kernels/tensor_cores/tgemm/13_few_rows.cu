// Idea: for few rows of A the bytes of B are the limit, so they are read just once.
// From the rung before: no launch prepares anything. Each warpgroup splits its own
// boxes into TF32 parts, which need no scales: A in shared memory, and B in registers,
// where its columns are the rows of the products.
// Requires: sm_90a.
#include "few.cuh"
