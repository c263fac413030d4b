// Shared memory of the rung runs, and the thread that fills it.
#pragma once

#include "../../common/hopper/dependent.cuh"
#include "../../common/hopper/tma.cuh"
#include "runs_planes.cuh"

constexpr int kGroups = 2;  // warpgroups that multiply
constexpr int kGroupThreads = 128;
constexpr int kConsumers = kGroups * kGroupThreads;
constexpr int kConsumerWarps = kConsumers / kWarp;
// Four warps more, for the copies: registers are handed over by warpgroups.
constexpr int kThreads = kConsumers + kGroupThreads;
// The weights of 8 output maps and of 4 input maps fill all banks.
constexpr int kWeightPitch = kDepth * kTaps + 4;

struct Weights {
    float at[kOuts * kWeightPitch];
};

// A slot has the weights of a step as floats, then a run of each of its planes: kGroups
// * kWide pieces and those of the other taps.
template <int kParts, int kWide, int kSlots> struct Ring {
    unsigned char* memory;
    int pieces;  // of a run
    int bytes;   // of a slot

    __device__ __forceinline__ Ring(unsigned char* memory, const Plane& plane)
        : memory(memory), pieces(kGroups * kWide + 2 * plane.pitch() + 2),
          bytes(sizeof(Weights) + kParts * kEights * pieces * sizeof(Eight))
    {
    }
    __device__ __forceinline__ Weights* weights(int slot) const
    {
        return reinterpret_cast<Weights*>(memory + slot * bytes);
    }
    __device__ __forceinline__ Eight* run(int slot) const
    {
        return reinterpret_cast<Eight*>(weights(slot) + 1);
    }
    __device__ __forceinline__ unsigned char* end() const
    {
        return memory + kSlots * bytes;
    }
};

template <int kSlots> struct Barriers {
    Barrier full[kSlots], empty[kSlots];
};

// Fills the ring, by one thread: `planes` are those of the first step, from the first
// piece of the run on, of `length` pieces each. Weights do not depend on the launch
// before.
template <int kParts, int kWide, int kSlots>
__device__ __forceinline__ void fill(const Ring<kParts, kWide, kSlots>& ring,
                                     Barriers<kSlots>& barriers,
                                     const TensorMap& weights, int first_step,
                                     const Eight* __restrict__ planes, int length,
                                     int steps)
{
    const auto copy_weights = [&](int step) {
        const int slot = step % kSlots;
        mbarrier_wait(&barriers.empty[slot], step / kSlots % 2 ^ 1);
        mbarrier_arrive_expect(&barriers.full[slot], ring.bytes);
        tma_load(ring.weights(slot), weights, (first_step + step) * (kDepth * kTaps),
                 blockIdx.z * kOuts, &barriers.full[slot]);
    };
    for (int step = 0; step < min(kSlots, steps); ++step) copy_weights(step);
    wait_for_launch_before();  // it makes the planes
    for (int step = 0; step < steps; ++step) {
        if (step >= kSlots) copy_weights(step);
        Eight* to = ring.run(step % kSlots);
#pragma unroll
        for (int plane = 0; plane < kParts * kEights; ++plane, planes += length) {
            bulk_load(to + plane * ring.pieces, planes, ring.pieces * sizeof(Eight),
                      &barriers.full[step % kSlots]);
        }
    }
}
