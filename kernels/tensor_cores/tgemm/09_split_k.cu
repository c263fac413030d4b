// Idea: where C has few tiles, blocks take a part of k each, and add up in the cluster.
// From the rung before: clusters along k, whose totals meet in distributed shared
// memory.
// Requires: sm_90a.
#include "fused.cuh"
#include "one_pass.cuh"
#include "two_passes.cuh"
