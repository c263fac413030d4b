// Idea: tensor cores truncate sums, so add them to a float32 total every 64 of k.
// From the rung before: totals in registers; the tensor cores' sums restart at zero.
// Requires: sm_90a.
#include "unfused.cuh"

struct Scheme {
    using Type = F16;
    static constexpr int kParts = 2, kTerms = 3;
    static __device__ int left(int term) { return term == 0; }
    static __device__ int right(int term) { return term == 1; }
};
