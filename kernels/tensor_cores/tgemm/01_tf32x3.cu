// Idea: a float is the sum of two TF32 numbers; three of the four products are added.
// From the rung before: this is the first rung: two passes split, a third multiplies.
// Requires: sm_90a.
#include "unfused.cuh"

struct Scheme {
    using Type = Tf32;
    static constexpr int kParts = 2, kTerms = 3;
    // The parts of A and B in each term: low high, high low, high high.
    static __device__ int left(int term) { return term == 0; }
    static __device__ int right(int term) { return term == 1; }
};
