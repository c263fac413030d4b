// Points that wait for a warp full of their kind, on stacks in shared memory. A stack
// belongs to one warp, whose lanes all know its depth.
#pragma once
#include "batch.cuh"

constexpr unsigned kLanes = 32;
constexpr unsigned kAllLanes = 0xffffffffu;

// A warp takes points as soon as there are kLanes, so never more than kLanes - 1 wait
// when kLanes new ones come.
struct Stack {
    float4 state[2 * kLanes];    // c and z
    unsigned index[2 * kLanes];  // of the point
    int count[2 * kLanes];       // steps so far
};

struct Item {
    unsigned index;
    Point c, z;
    int count;
};

// Push the items of the lanes where `when`. All lanes of the warp call it.
__device__ __forceinline__ void push(
    Stack& stack, unsigned& depth, bool when, const Item& item)
{
    const unsigned lane = threadIdx.x % kLanes;
    const unsigned pushed = __ballot_sync(kAllLanes, when);
    if (when) {
        const unsigned at = depth + __popc(pushed & ((1u << lane) - 1));
        stack.state[at] = {item.c.re, item.c.im, item.z.re, item.z.im};
        stack.index[at] = item.index;
        stack.count[at] = item.count;
    }
    depth += __popc(pushed);
    __syncwarp();  // others pop what this lane has pushed
}

// Pop an item for each lane, as long as there are any. Returns whether this lane has
// one; the others get a point that stays at the origin.
__device__ __forceinline__ bool pop(const Stack& stack, unsigned& depth, Item& item)
{
    const unsigned lane = threadIdx.x % kLanes, popped = min(depth, kLanes);
    depth -= popped;
    item = {};
    if (lane < popped) {
        const float4 state = stack.state[depth + lane];
        item.index = stack.index[depth + lane];
        item.c = {state.x, state.y};
        item.z = {state.z, state.w};
        item.count = stack.count[depth + lane];
    }
    __syncwarp();  // others push where this lane has popped
    return lane < popped;
}

// The points of a warp in the order in which it takes them: groups of kLanes
// neighbours. In each turn the groups of all warps are neighbours too, and each warp
// moves on by kShift groups, so that it does not get the same part of every row of a
// picture.
struct Groups {
    static constexpr unsigned kShift = 37;
    unsigned warps, shift, place, before, count;

    __device__ Groups(unsigned threads, unsigned n)
        : warps(gridDim.x * (threads / kLanes)), shift(kShift % warps),
          place(blockIdx.x * (threads / kLanes) + threadIdx.x / kLanes), before(0),
          count(n / kLanes + (n % kLanes != 0))
    {
    }
    __device__ bool left() const
    {
        return before < count;
    }
    // The first point of the next group, which may lie beyond the last point.
    __device__ unsigned next()
    {
        const unsigned group = before + place;
        before += warps;
        place += shift;
        place -= place >= warps ? warps : 0;
        return group * kLanes;
    }
};

// Take steps with a test after each, until there are `end` or the point is outside.
__device__ __forceinline__ void count_steps(Item& item, int end)
{
    while (item.count < end && step(item.z, item.c)) {
        ++item.count;
    }
}

// The first kSteps steps of the lane's item, all taken by all lanes. Returns whether
// the point is still inside and stays outside once it is not.
template <int kSteps>
__device__ __forceinline__ bool first_steps(Item& item)
{
    bool within = true;
#pragma unroll
    for (int k = 0; k < kSteps; ++k) {
        within = step(item.z, item.c) && within;
        item.count += within;
    }
    if (within && !stays_outside(item.c)) {
        count_steps(item, kMaxSteps);
        within = false;
    }
    return within;
}
