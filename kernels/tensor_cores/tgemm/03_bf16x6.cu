// Idea: three bfloat16 parts hold all 24 bits; six of nine products are added.
// From the rung before: a third part, and three more products, down to 2^-16.
// Requires: sm_90a.
#include "unfused.cuh"

struct Scheme {
    using Type = Bf16;
    static constexpr int kParts = 3, kTerms = 6;
    // The parts of each term, as digits from right to left: 20 11 02 10 01 00.
    static __device__ int left(int term) { return 0x001012 >> 4 * term & 3; }
    static __device__ int right(int term) { return 0x010210 >> 4 * term & 3; }
};
