// Idea: the warp owns the points, and assigns new ones to lanes that are done.
// From the rung before: a lane with quick points takes more of them; within a batch no
// lane leaves or branches, and the lanes vote after it.
// Requires: a block of kThreads threads.
#include "escape.cuh"

constexpr int kThreads = 256;
constexpr int kLanes = 32;
constexpr int kPoints = 16;  // per lane of a warp
constexpr int kBatch = 8;
constexpr unsigned kAllLanes = 0xffffffffu;
static_assert(
    kMaxSteps % kBatch == 0, "a point in the set is done at the end of a batch");

__global__ void escape_refilled(
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
    // The first point of the share that no lane has taken, the same in all lanes.
    unsigned next = kLanes;
    unsigned mine = lane;
    Point c = {0.0f, 0.0f};
    if (mine < share) {
        c = {re[first + mine], im[first + mine]};
    }
    Point z = {0.0f, 0.0f};
    int count = 0;
    while (__any_sync(kAllLanes, mine < share)) {
        bool inside[kBatch];
#pragma unroll
        for (int k = 0; k < kBatch; ++k) {
            inside[k] = step(z, c);
        }
        int stayed = kBatch;
#pragma unroll
        // Goes backwards, so that the first step outside decides.
        for (int k = kBatch - 1; k >= 0; --k) {
            stayed = inside[k] ? stayed : k;
        }
        count += stayed;
        const bool done = stayed < kBatch || count == kMaxSteps;
        const unsigned finished = __ballot_sync(kAllLanes, done);
        if (done) {
            if (mine < share) {
                counts[first + mine] = count;
            }
            // Skips the points that lower lanes take.
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
