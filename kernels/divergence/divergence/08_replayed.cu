// Idea: test once per batch; if a point is outside then, replay the batch step by step.
// From the rung before: no test in the steps of a batch, but one in each replayed step,
// while the rest of the warp waits.
// Requires: a block of kThreads threads.
#include "batch.cuh"

constexpr int kThreads = 256;
constexpr int kLanes = 32;
constexpr int kPoints = 16;  // per lane of a warp
constexpr int kBatch = 8;
constexpr unsigned kAllLanes = 0xffffffffu;
static_assert(
    kMaxSteps % kBatch == 0, "a point in the set is done at the end of a batch");

__global__ void escape_replayed(
    const float* __restrict__ re, const float* __restrict__ im,
    int* __restrict__ counts, size_t n)
{
    const unsigned lane = threadIdx.x % kLanes;
    const size_t first =
        (static_cast<size_t>(blockIdx.x) * kThreads + threadIdx.x - lane) * kPoints;
    if (first >= n) {
        return;
    }
    const unsigned share =
        static_cast<unsigned>(min(n - first, static_cast<size_t>(kLanes * kPoints)));
    unsigned next = kLanes;
    unsigned mine = lane;
    Point c = {0.0f, 0.0f};
    if (mine < share) {
        c = {re[first + mine], im[first + mine]};
    }
    Point z = {0.0f, 0.0f};
    int count = 0;
    while (__any_sync(kAllLanes, mine < share)) {
        const Point before = z;
#pragma unroll
        for (int k = 0; k < kBatch; ++k) {
            z = advance(z, c);
        }
        bool done = false;
        if (stays_outside(c) && inside(z)) {
            count += kBatch;
            done = count == kMaxSteps;
        } else {
            z = before;
            const int end = count + kBatch;
            while (count < end && step(z, c)) {
                ++count;
            }
            done = count < end || count == kMaxSteps;
        }
        const unsigned finished = __ballot_sync(kAllLanes, done);
        if (done) {
            if (mine < share) {
                counts[first + mine] = count;
            }
            mine = next + __popc(finished & ((1u << lane) - 1));
            if (mine < share) {
                c = {re[first + mine], im[first + mine]};
            }
            z = {0.0f, 0.0f};
            count = 0;
        }
        next += __popc(finished);
    }
}
