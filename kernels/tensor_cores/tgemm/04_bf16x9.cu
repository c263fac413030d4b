// Idea: add all nine products of three bfloat16 parts, so that none is left out.
// From the rung before: the three smallest products as well.
// Requires: sm_90a.
#include "unfused.cuh"

struct Scheme {
    using Type = Bf16;
    static constexpr int kParts = 3, kTerms = 9;
    // The digits from right to left: 22 21 12 20 11 02 10 01 00.
    static __device__ int left(int term) { return 0x001012122ull >> 4 * term & 3; }
    static __device__ int right(int term) { return 0x010210212ull >> 4 * term & 3; }
};
