// The multiplying warps of the rung overlapped. Products of a tile's first step run
// while the sums of the tile before are stored.
#pragma once

#include "fused_work.cuh"

// A tile's place, by tiles. Counters, because a division would delay the next product.
struct Spot {
    int x, y, image;

    template <class Work>
    __device__ __forceinline__ static Spot of(const Work& work, int tile)
    {
        const int above = tile / work.across;
        return {tile % work.across, above % work.down, above / work.down};
    }
    // The place of the tile as many further as `by` is from the first.
    template <class Work>
    __device__ __forceinline__ Spot plus(const Work& work, const Spot& by) const
    {
        Spot next = {x + by.x, y + by.y, image + by.image};
        if (next.x >= work.across) {
            next.x -= work.across;
            ++next.y;
        }
        if (next.y >= work.down) {
            next.y -= work.down;
            ++next.image;
        }
        return next;
    }
};

// The place of a thread's sums of a tile in the output, and the rows and columns that
// the map has from there on.
struct Target {
    float* to;
    int rows = 0, columns = 0;  // no sums yet
};

// A thread's sums: of high parts since the last addition to the totals, of high and low
// parts, and totals.
template <int kParts, int kStrips, int kHigh> struct Sums {
    static constexpr int kSums = kStrips * kWide * kHigh / 2;
    float part[kSums], crossed[kSums], total[kSums];

    // Stores two sums if they lie in the map.
    __device__ __forceinline__ void store(const Target& target, int j, float first,
                                          float second, int n, int outs) const
    {
        const int eight = j / 4, row = eight / kStrips, right = eight % kStrips * kWide;
        const int further = j / 2 % 2 * 8;  // output maps
        if (further < outs && row < target.rows && right < target.columns) {
            float* here = target.to + static_cast<size_t>(further) * n * n + row * n;
            *reinterpret_cast<float2*>(here + right) = make_float2(first, second);
        }
    }
    // Stores a part of the totals, of kTaps parts, and sets them to zero.
    __device__ __forceinline__ void store_share(const Target& target, int share, int n,
                                                int outs)
    {
#pragma unroll
        for (int two = share * (kSums / 2) / kTaps;
             two < (share + 1) * (kSums / 2) / kTaps; ++two) {
            const int j = 2 * two;
            store(target, j, total[j], total[j + 1], n, outs);
            total[j] = total[j + 1] = 0.0f;
        }
    }
    // Starts a step's products; `between` runs once those of the step before are made.
    // With kFirst, the step begins new sums, and the totals are stored meanwhile.
    template <bool kFirst, class Released>
    __device__ __forceinline__ void multiply(Descriptor weights, Descriptor pixels,
                                             int row, int low, bool anew,
                                             const Target& target, int n, int outs,
                                             const Released& between)
    {
        wgmma_fence();
#pragma unroll
        for (int tap = 0; tap < kTaps; ++tap) {
            const Descriptor a = weights + tap * (kParts * kOutsAtOnce);
            const Descriptor b = pixels + tap / 3 * row + tap % 3;
            wgmma_f16(part, a, b, (!kFirst && !anew) || tap > 0);
            if constexpr (kParts == 2) {
                wgmma_f16(crossed, a + kOutsAtOnce, b, !kFirst || tap > 0);
                wgmma_f16(crossed, a, b + low, true);
            }
            if (tap == 0) {
                wgmma_commit();
                wgmma_wait<1>();
                between();
            }
            if (kFirst) store_share(target, tap, n, outs);
        }
        wgmma_commit();
    }
    __device__ __forceinline__ void add_part()
    {
#pragma unroll
        for (int j = 0; j < kSums; ++j) total[j] += part[j];
    }
    __device__ __forceinline__ void add_all()
    {
#pragma unroll
        for (int j = 0; j < kSums; ++j) {
            total[j] += part[j];
            if constexpr (kParts == 2) total[j] += crossed[j] / kLowScale;
        }
    }
    // Adds up the totals of two warpgroups, each half of them, in its first half.
    template <int kGroup>
    __device__ __forceinline__ void exchange(float2 (*given)[kSums / 4][kGroupThreads],
                                             int thread)
    {
        constexpr int kHalf = kSums / 2, kKept = kGroup * kHalf, kOther = kHalf - kKept;
        sync_consumers();  // all products have read the ring, which the sums replace
#pragma unroll
        for (int j = 0; j < kHalf; j += 2) {
            given[kGroup][j / 2][thread] =
                make_float2(total[kOther + j], total[kOther + j + 1]);
        }
        sync_consumers();  // all sums are stored
#pragma unroll
        for (int j = 0; j < kHalf; j += 2) {
            const float2 theirs = given[1 - kGroup][j / 2][thread];
            total[j] = total[kKept + j] + theirs.x;
            total[j + 1] = total[kKept + j + 1] + theirs.y;
        }
    }
};

// The products of a warpgroup.
template <int kParts, int kStrips, int kHigh>
__device__ __forceinline__ void multiply(Ring<kParts, kStrips, kHigh>& ring,
                                         Barriers& barriers,
                                         const Work<kStrips, kHigh>& work,
                                         float* __restrict__ output, int group,
                                         int thread)
{
    using Shared = Ring<kParts, kStrips, kHigh>;
    using OwnSums = Sums<kParts, kStrips, kHigh>;
    const int lane = thread % kWarp, n = work.n;
    const int out = blockIdx.y * kOuts + thread / kWarp * 16 + lane / 4;
    const int outs = work.c_out - out;  // output maps from the first of this thread
    const Spot apart = Spot::of(work, gridDim.x);
    Spot spot = Spot::of(work, blockIdx.x);
    OwnSums sums;
#pragma unroll
    for (int j = 0; j < OwnSums::kSums; ++j) sums.total[j] = 0.0f;
    Target target;  // of the totals, until they are stored
    int item = group;
    int set = 0;
    for (int k = 0; k < work.own; k += kGroups) {
        const bool both = k + 1 < work.own;
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
            const int tap_slot = work.tap_slot(set, step);
            mbarrier_wait(&barriers.taps_full[tap_slot], work.tap_parity(set));
            if (!both && step % kGroups != group) {
                if (lane == 0) release_taps(tap_slot);
                continue;
            }
            const int slot = item % kPixelSlots;
            mbarrier_wait(&barriers.full[slot], item / kPixelSlots % 2);
            item += kGroups;
            // Tensor cores truncate sums, so every kChain steps their sums are added to
            // float32 totals. The two warpgroups do so in different steps.
            const bool anew = used > 0 && (used + group) % kChain == 0;
            if (anew) {
                wgmma_wait<0>();
                release();
                sums.add_part();
            }
            const Taps<kParts>& weights = ring.taps[tap_slot];
            const Descriptor rows =
                describe_pieces(&weights, sizeof(weights.eights[0][0]),
                                sizeof(weights.eights[0]));
            const Descriptor pixels =
                describe_pieces(ring.pixels[slot], Shared::kPixels * sizeof(Eight),
                                kHaloWide * sizeof(Eight));
            constexpr int kLow = kEights * Shared::kPixels;
            if (used == 0) {
                sums.template multiply<true>(rows, pixels, Shared::kRow, kLow, true,
                                             target, n, outs, release);
            } else {
                sums.template multiply<false>(rows, pixels, Shared::kRow, kLow, anew,
                                              target, n, outs, release);
            }
            ++used;
            held = slot;
            held_taps = tap_slot;
        }
        if (used == 0) {  // the other warpgroup has the only step
#pragma unroll
            for (int share = 0; share < kTaps; ++share) {
                sums.store_share(target, share, n, outs);
            }
        }
        const Spot mine = both && group == 1 ? spot.plus(work, apart) : spot;
        spot = spot.plus(work, apart).plus(work, apart);
        const int x = mine.x * (kStrips * kWide) + lane % 4 * 2, y = mine.y * kHigh;
        const size_t map = static_cast<size_t>(mine.image) * work.c_out + out;
        target = {output + (map * n + y) * n + x, n - y, n - x};
        wgmma_wait<0>();
        release();
        if (used > 0) sums.add_all();
        if (both) continue;
        using Given = float2[kGroups][OwnSums::kSums / 4][kGroupThreads];
        static_assert(sizeof(Given) <= sizeof(Shared) && kHigh % 2 == 0,
                      "the ring has room; half of the sums are whole rows");
        Given& given = *reinterpret_cast<Given*>(&ring);
        if (group == 0) {
            sums.template exchange<0>(given, thread);
        } else {
            sums.template exchange<1>(given, thread);
            target.to += kHigh / 2 * n;
        }
        // Half of the rows are this warpgroup's.
        target.rows = min(target.rows - group * (kHigh / 2), kHigh / 2);
    }
#pragma unroll
    for (int share = 0; share < kTaps; ++share) {
        sums.store_share(target, share, n, outs);
    }
}
