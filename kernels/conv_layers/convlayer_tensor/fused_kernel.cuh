// The second launch of the rungs fused and whole_steps. A rung defines Ring, Barriers,
// copy and split before.
#pragma once

#include "fused_products.cuh"

template <int kParts>
__device__ __forceinline__ Descriptor describe_taps(const Taps<kParts>& taps)
{
    return describe_pieces(&taps, sizeof(taps.eights[0][0]), sizeof(taps.eights[0]));
}
// Weights of a step have been used, by a warp.
template <int kStrips, int kHigh>
__device__ __forceinline__ void release_taps(Barriers& barriers,
                                             const Work<kStrips, kHigh>& work, int slot)
{
    if (!work.resident()) mbarrier_arrive(&barriers.taps_empty[slot]);
}

template <int kParts, int kStrips, int kHigh>
__global__ void __launch_bounds__(kThreads, 1)
    convlayer_fused(const Taps<kParts>* __restrict__ taps,
                    const __grid_constant__ TensorMap input,
                    float* __restrict__ output, int n, int c_in, int c_out, int images)
{
    using Shared = Ring<kParts, kStrips, kHigh>;
    extern __shared__ __align__(128) unsigned char shared_bytes[];
    Shared& ring = *reinterpret_cast<Shared*>(shared_bytes);
    __shared__ Barriers barriers;
    const int lane = threadIdx.x % kWarp;
    const int warp = __shfl_sync(~0u, threadIdx.x / kWarp, 0);
    const Work<kStrips, kHigh> work(n, c_in, c_out, images);
    if (threadIdx.x == 0) {
        for (int s = 0; s < kTapSlots; ++s) {
            mbarrier_init(&barriers.taps_full[s], 1);
            mbarrier_init(&barriers.taps_empty[s], kConsumerWarps);
        }
        for (int s = 0; s < kRawSlots; ++s) {
            mbarrier_init(&barriers.raw_full[s], 1);
            mbarrier_init(&barriers.raw_empty[s], kPixelWarps);
        }
        for (int s = 0; s < kPixelSlots; ++s) {
            mbarrier_init(&barriers.full[s], kPixelWarps);
            mbarrier_init(&barriers.empty[s], kGroupWarps);
        }
        fence_mbarrier_init();
    }
    __syncthreads();
    if (warp == kConsumerWarps) {
        release_registers<40>();
        if (lane == 0) copy(ring, barriers, work, taps, input);
        __syncwarp();
        return;
    }
    if (warp > kConsumerWarps) {
        release_registers<40>();
        split(ring, barriers, work, threadIdx.x - (kConsumerWarps + 1) * kWarp);
        return;
    }
    claim_registers<216>();
    multiply(ring, barriers, work, output);
}
