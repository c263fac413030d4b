// Idea: splitting A in registers costs nothing while the other warpgroup multiplies.
// From the rung before: A in float32 again, and a pass over A that writes nothing.
// Requires: sm_90a.
#include "held.cuh"
#include "one_pass.cuh"
#include "two_passes.cuh"
