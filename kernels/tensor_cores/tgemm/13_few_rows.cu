// Idea: for few rows of A the bytes of B are the limit, so they are read just once.
// From the rung before: nothing is prepared. Warpgroups with boxes of their own split
// them to TF32, which needs no scales: A in shared memory, columns of B, which are the
// rows of the products here, in registers.
// Requires: sm_90a.
#include "few.cuh"
