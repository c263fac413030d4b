// Idea: one launch prepares both factors, and reads A while blocks of B wait.
// From the rung before: blocks for A's rows lie among those that split B.
// Requires: sm_90a; k of at most 8192, else B is read twice.
#include "held.cuh"
#include "one_launch.cuh"
#include "two_passes.cuh"
