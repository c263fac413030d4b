// Idea: a point that is back where it was one batch earlier is in a cycle forever.
// From the rung before: shorter batches, and a comparison of z with its value one batch
// earlier at the end of each stage; points in a cycle need no more steps.
// Requires: a block of kThreads threads.
#include "stacks.cuh"

constexpr int kThreads = 256;
constexpr int kBlocks = 6;  // per SM
constexpr int kFew = 8;     // steps of the first stage, each with a test
// Steps between tests in the others: a multiple of the lengths of most cycles.
constexpr int kBatch = 12;
// Batches in these stages. The remaining steps are taken one by one.
__device__ constexpr int kStages[] = {6, 14};
constexpr int kLast = sizeof(kStages) / sizeof(int);

enum class Fate { kStays, kCycles, kLeaves };

// Takes the batches of a stage. If the point goes outside, the item keeps its state
// from before that batch.
__device__ __forceinline__ Fate pass(Item& item, int batches)
{
    Point z = item.z, before = z;
#pragma unroll 1
    for (int b = 0; b < batches; ++b) {
        before = z;
#pragma unroll
        for (int k = 0; k < kBatch; ++k) {
            z = advance(z, item.c);
        }
        if (inside(z)) {
            item.z = z;
            item.count += kBatch;
        }
    }
    if (!inside(z)) {
        return Fate::kLeaves;
    }
    return z.re == before.re && z.im == before.im ? Fate::kCycles : Fate::kStays;
}

__global__ void __launch_bounds__(kThreads, kBlocks) escape_cycle_check(
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
                const Fate fate = pass(item, kStages[s]);
                if (taken && fate == Fate::kCycles) {
                    counts[item.index] = kMaxSteps;
                }
                const bool stays = taken && fate == Fate::kStays;
                if (s + 1 < kLast) {
                    push(mine[s + 1], depth[(s + 1) % kLast], stays, item);
                }
                const bool last = stays && s + 1 == kLast;
                push(mine[kLast], back, taken && fate == Fate::kLeaves || last, item);
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
