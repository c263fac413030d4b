// Idea: for few rows of A the bytes of B are the limit, so they are read just once.
// From the rung before: the roles are exchanged; B's columns are split in registers,
// with a scale that follows the largest element so far; A lies in shared memory.
// Requires: sm_90a.
#include "skinny.cuh"
