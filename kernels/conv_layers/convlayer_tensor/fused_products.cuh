// The second launch of the rungs fused, whole_steps and early_release, with the code of
// its multiplying warps. Before including this, a rung defines Ring, copy and split,
// and in kEarlyRelease when slots are released.
#pragma once

#include "fused_work.cuh"
#include "to_taps.cuh"

template <int kParts, int kStrips, int kHigh>
__global__ void __launch_bounds__(kThreads, 1)
    convlayer_fused(const Taps<kParts>* __restrict__ taps,
                    const __grid_constant__ TensorMap input,
                    float* __restrict__ output, int n, int c_in, int c_out, int images)
{
    using Shared = Ring<kParts, kStrips, kHigh>;
    constexpr int kSums = kStrips * kWide * kHigh / 2;  // of a thread
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
    const int group = warp / kGroupWarps;
    const int thread = threadIdx.x % kGroupThreads;
    const size_t map = static_cast<size_t>(n) * n;
    const int out = blockIdx.y * kOuts + thread / kWarp * 16 + lane / 4;
    int item = group;
    int set = 0;
    for (int k = 0; k < work.own; k += kGroups) {
        const bool both = k + 1 < work.own;
        float total[kSums], part[kSums], crossed[kSums];
#pragma unroll
        for (int j = 0; j < kSums; ++j) {
            total[j] = 0.0f;
            part[j] = 0.0f;
            crossed[j] = 0.0f;
        }
        int used = 0;
        int held = -1, held_taps = -1;  // slots that products in flight may read
        const auto release_taps = [&](int slot) {
            if (!work.resident()) mbarrier_arrive(&barriers.taps_empty[slot]);
        };
        const auto release = [&]() {
            __syncwarp();
            if (held >= 0 && lane == 0) {
                mbarrier_arrive(&barriers.empty[held]);
                release_taps(held_taps);
            }
            held = -1;
        };
        for (int step = 0; step < work.steps; ++step, ++set) {
            const int tap_slot =
                kEarlyRelease ? work.tap_slot(set, step) : work.tap_slot(set);
            if (!both && step % kGroups != group) {
                // Wait first: otherwise the warp could arrive twice in one phase.
                mbarrier_wait(&barriers.taps_full[tap_slot], work.tap_parity(set));
                if (lane == 0) release_taps(tap_slot);
                continue;
            }
            const int slot = item % kPixelSlots;
            mbarrier_wait(&barriers.taps_full[tap_slot], work.tap_parity(set));
            mbarrier_wait(&barriers.full[slot], item / kPixelSlots % 2);
            item += kGroups;
            // Tensor cores truncate sums, so every kChain steps their sums are added to
            // float32 totals. The two warpgroups do so in different steps.
            const bool anew = used > 0 && (used + group) % kChain == 0;
            if (anew) {
                wgmma_wait<0>();
                release();
#pragma unroll
                for (int j = 0; j < kSums; ++j) total[j] += part[j];
            }
            const Taps<kParts>& weights = ring.taps[tap_slot];
            const Descriptor rows =
                describe_pieces(&weights, sizeof(weights.eights[0][0]),
                                sizeof(weights.eights[0]));
            const Descriptor pixels =
                describe_pieces(ring.pixels[slot], Shared::kPixels * sizeof(Eight),
                                kHaloWide * sizeof(Eight));
            wgmma_fence();
#pragma unroll
            for (int tap = 0; tap < kTaps; ++tap) {
                const Descriptor a = rows + tap * (kParts * kOutsAtOnce);
                const Descriptor b = pixels + tap / 3 * Shared::kRow + tap % 3;
                wgmma_f16(part, a, b, !anew || tap > 0);
                if constexpr (kParts == 2) {
                    wgmma_f16(crossed, a + kOutsAtOnce, b, true);
                    wgmma_f16(crossed, a, b + kEights * Shared::kPixels, true);
                }
                if (kEarlyRelease && tap == 0) {
                    // Starting all 27 takes as long as the previous step's products.
                    wgmma_commit();
                    wgmma_wait<1>();
                    release();
                }
            }
            wgmma_commit();
            ++used;
            if (!kEarlyRelease) {
                wgmma_wait<1>();  // the previous step's products are done
                release();
            }
            held = slot;
            held_taps = tap_slot;
        }
        wgmma_wait<0>();
        release();
#pragma unroll
        for (int j = 0; j < kSums; ++j) {
            total[j] = (total[j] + part[j]) + crossed[j] / kLowScale;
        }
        const int tile = blockIdx.x + (k + (both ? group : 0)) * gridDim.x;
        const int x = work.x(tile) + lane % 4 * 2;
        const int y = work.y(tile);
        float* to = output +
                    (static_cast<size_t>(work.image(tile)) * c_out + out) * map + x;
        const auto store = [&](int j, float first, float second) {
            const int eight = j / 4;
            const int right = eight % kStrips * kWide;
            const int row = y + eight / kStrips;
            if (out + j / 2 % 2 * 8 < c_out && row < n && x + right < n) {
                float* here = to + j / 2 % 2 * 8 * map + row * n + right;
                *reinterpret_cast<float2*>(here) = make_float2(first, second);
            }
        };
        if (both) {
#pragma unroll
            for (int j = 0; j < kSums; j += 2) store(j, total[j], total[j + 1]);
            continue;
        }
        // The warpgroups exchange halves of their sums, which replace the ring.
        using Given = float2[kSums / 4][kGroupThreads];
        Given* given = reinterpret_cast<Given*>(shared_bytes);
        static_assert(kGroups * sizeof(Given) <= sizeof(Shared), "the ring has room");
        sync_consumers();  // all products have read the ring
#pragma unroll
        for (int j = 0; j < kSums / 2; j += 2) {
            const int other = j + kSums / 2;
            given[group][j / 2][thread] =
                group == 0 ? make_float2(total[other], total[other + 1])
                           : make_float2(total[j], total[j + 1]);
        }
        sync_consumers();  // all sums are stored
#pragma unroll
        for (int j = 0; j < kSums / 2; j += 2) {
            const int other = j + kSums / 2;
            const float2 theirs = given[1 - group][j / 2][thread];
            if (group == 0) {
                store(j, total[j] + theirs.x, total[j + 1] + theirs.y);
            } else {
                store(other, total[other] + theirs.x, total[other + 1] + theirs.y);
            }
        }
    }
}
