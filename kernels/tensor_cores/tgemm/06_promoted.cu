// Idea: tensor cores truncate their sums, so every 64 of k they go to a float32 total.
// From the rung before: the totals, and sums that start anew.
// Requires: sm_90a.
#include "unfused.cuh"

struct Scheme {
    using Type = F16;
    static constexpr int kParts = 2, kTerms = 3;
    static __device__ int left(int term) { return term == 0; }
    static __device__ int right(int term) { return term == 1; }
};
