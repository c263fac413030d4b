// Idea: one launch prepares both factors, and reads A while blocks of B wait.
// From the rung before: A is split beforehand again, as in tuned, by blocks interleaved
// with those of B.
// Requires: sm_90a; k of at most 8192, else B is read twice.
#include "one_launch.cuh"
#include "tuned.cuh"
#include "two_passes.cuh"
