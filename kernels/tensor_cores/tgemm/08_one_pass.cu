// Idea: B is read once; launches overlap, and their first loads do not wait.
// From the rung before: blocks that split the same columns of B wait for each other,
// with their rows in registers; programmatic dependent launch.
// Requires: sm_90a; k of at most 8192, else B is read twice.
#include "fused.cuh"
#include "one_pass.cuh"
#include "two_passes.cuh"
