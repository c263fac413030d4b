// Stacks in shared memory that collect points until there is a full warp of them. A
// stack belongs to one warp, whose lanes all hold its depth.
#pragma once
#include "batch.cuh"

constexpr unsigned kLanes = 32;
constexpr unsigned kAllLanes = 0xffffffffu;

// A warp pops points as soon as there are kLanes, so at most kLanes - 1 are left when
// kLanes new ones are pushed.
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

// Pushes the items of lanes with `when`. All lanes of the warp must call it.
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
    __syncwarp();  // other lanes pop the items that this lane pushed
}

// Pops one item per lane, as long as there are any. Returns whether this lane got one;
// the other lanes get a point that stays at the origin.
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
    __syncwarp();  // other lanes push where this lane popped
    return lane < popped;
}

// A warp's points in the order in which it takes them: groups of kLanes neighbours.
// In each round, the groups of all warps are neighbours too, and each warp moves on by
// kShift groups, so that it does not always get the same part of the rows of an
// image.
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
    // The first point of the next group, which may be past the last point.
    __device__ unsigned next()
    {
        const unsigned group = before + place;
        before += warps;
        place += shift;
        place -= place >= warps ? warps : 0;
        return group * kLanes;
    }
};

// Takes steps with a test after each, until step `end` or until the point is outside.
__device__ __forceinline__ void count_steps(Item& item, int end)
{
    while (item.count < end && step(item.z, item.c)) {
        ++item.count;
    }
}

// Takes the first kSteps steps of the lane's item; all lanes take all steps. Returns
// true if the point is inside and will stay outside once it is not.
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
