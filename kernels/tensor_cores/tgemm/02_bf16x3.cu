// Idea: two bfloat16 parts hold 16 bits of the 24, and multiply twice as fast.
// From the rung before: another type of parts.
// Requires: sm_90a; gives up a third of float32's bits.
#include "unfused.cuh"

struct Scheme {
    using Type = Bf16;
    static constexpr int kParts = 2, kTerms = 3;
    static __device__ int left(int term) { return term == 0; }
    static __device__ int right(int term) { return term == 1; }
};
