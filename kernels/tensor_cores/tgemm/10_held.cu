// Idea: splitting A in registers costs nothing while the other warpgroup multiplies.
// From the rung before: A stays float32 again; the pass over A only finds exponents.
// Requires: sm_90a.
#include "held.cuh"
#include "one_pass.cuh"
#include "two_passes.cuh"
