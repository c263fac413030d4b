// Idea: two halves hold 22 bits and the sign of the second: three products suffice.
// From the rung before: parts of 11 bits, and a third of the products.
// Requires: sm_90a.
#include "unfused.cuh"

struct Scheme {
    using Type = F16;
    static constexpr int kParts = 2, kTerms = 3;
    static __device__ int left(int term) { return term == 0; }
    static __device__ int right(int term) { return term == 1; }
};
