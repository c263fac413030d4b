// Idea: collect the points that pass a stage until a full warp can take the next one.
// From the rung before: stages of a few, some and many steps, with stacks between them;
// points that replay a batch do so together too, so hardly any lane idles.
// Requires: a block of kThreads threads.
#include "stacks.cuh"

constexpr int kThreads = 256;
constexpr int kBlocks = 6;  // per SM
constexpr int kFew = 8;     // steps of the first stage, each with a test
constexpr int kBatch = 31;  // steps between tests in the others
// Batches in the second and in the third stage.
__device__ constexpr int kStages[] = {1, 7};
constexpr int kLast = sizeof(kStages) / sizeof(int);
static_assert(kFew + 8 * kBatch == kMaxSteps, "whoever passes the last stage is done");

// Takes the batches of a stage. Returns whether the point is inside at the end; if not,
// the item keeps its state from before the batch in which it went outside.
__device__ __forceinline__ bool pass(Item& item, int batches)
{
    Point z = item.z;
#pragma unroll 1
    for (int b = 0; b < batches; ++b) {
#pragma unroll
        for (int k = 0; k < kBatch; ++k) {
            z = advance(z, item.c);
        }
        if (inside(z)) {
            item.z = z;
            item.count += kBatch;
        }
    }
    return inside(z);
}

__global__ void __launch_bounds__(kThreads, kBlocks) escape_compacted(
    const float* __restrict__ re, const float* __restrict__ im,
    int* __restrict__ counts, unsigned n)
{
    __shared__ Stack stacks[kThreads / kLanes][kLast + 1];
    Stack* const mine = stacks[threadIdx.x / kLanes];
    unsigned depth[kLast] = {}, back = 0;
    Groups groups(kThreads, n);
    while (true) {
        const bool drain = !groups.left();
        Item item;
        bool busy = false;
        // The last stage comes first, so that no stack overflows.
#pragma unroll
        for (int s = kLast - 1; s >= 0; --s) {
            if (!busy && (depth[s] >= kLanes || drain && depth[s] > 0)) {
                busy = true;
                const bool taken = pop(mine[s], depth[s], item);
                const bool passed = pass(item, kStages[s]);
                if (s + 1 < kLast) {
                    push(mine[s + 1], depth[(s + 1) % kLast], taken && passed, item);
                } else if (taken && passed) {
                    counts[item.index] = kMaxSteps;
                }
                push(mine[kLast], back, taken && !passed, item);
            }
        }
        if (!busy && !drain) {
            item = {groups.next() + threadIdx.x % kLanes};
            const bool taken = item.index < n;
            if (taken) {
                item.c = {re[item.index], im[item.index]};
            }
            const bool passed = first_steps<kFew>(item);
            if (taken && !passed) {
                counts[item.index] = item.count;
            }
            push(mine[0], depth[0], taken && passed, item);
        }
        if (back >= kLanes || !busy && drain && back > 0) {
            if (pop(mine[kLast], back, item)) {
                count_steps(item, kMaxSteps);
                counts[item.index] = item.count;
            }
        } else if (!busy && drain) {
            return;
        }
    }
}
