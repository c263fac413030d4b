// Blocks of a tile draw tickets for their next stage as soon as they have room, so that
// all end at the same time. A tile has 64 kGroups outputs and kSamples samples.
#pragma once

#include "../../common/warp.cuh"
#include "corrections.cuh"

constexpr int kConsumers = 512;
constexpr int kThreads = kConsumers + 128;
constexpr int kSplitters = 2;  // warps
constexpr int kMostTiles = 132;

// Tickets for stages that were drawn, by tile. At the end a block of the tile makes
// them zero again.
__device__ unsigned stages_taken[kMostTiles];

// Four warpgroups have 64 outputs each of as many slabs as that leaves.
template <int kGroups> constexpr int kSlabs = 4 / kGroups;
template <int kGroups, int kSamples> struct alignas(1024) Stage {
    float weights[kSlabs<kGroups>][64 * kGroups * kDepth];
    Slab<kSamples> input[kSlabs<kGroups>];
};

// Weights are read once: L2 may drop them before it drops the input.
__device__ __forceinline__ void tma_load_once(
    void* to, const TensorMap& from, int x, int y, Barrier* barrier)
{
    unsigned long long policy;
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
        ".L2::cache_hint [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(shared_address(to)),
        "l"(&from), "r"(x), "r"(y), "r"(shared_address(barrier)), "l"(policy)
        : "memory");
}

// A barrier for some warps; `id` is 1 to 15. The second form does not wait.
__device__ __forceinline__ void sync_some(int id, int threads)
{
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
__device__ __forceinline__ void arrive_some(int id, int threads)
{
    asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// With 64 samples, two pairs of warpgroups take turns: while tensor cores multiply the
// weights of one, the other splits its own.
template <int kSamples> __device__ __forceinline__ void begin_turn(int pair)
{
    if constexpr (kSamples == 64) sync_some(5 + pair, kConsumers);
}
template <int kSamples> __device__ __forceinline__ void end_turn(int pair)
{
    if constexpr (kSamples == 64) arrive_some(6 - pair, kConsumers);
}

// The products of a warpgroup's 64 lines of weights with a slab of the samples: first
// the corrections, then the high parts on top of them. Products of 8 and of 16 inputs
// may not be in flight together on the same registers.
template <int kSamples>
__device__ __forceinline__ void multiply(
    float (&part)[kSamples / 2], const float* weights, int row, int quad,
    const Slab<kSamples>& slab, int pair)
{
    Weights split;
    split_weights(split, weights, row, quad);
    const Descriptor parts = describe_rows_of_k(slab.parts);
    const Descriptor tall = describe_rows_of_k(slab.whole);
    begin_turn<kSamples>(pair);
    wgmma_fence();
#pragma unroll
    for (int p = 0; p < kDepth / 16; ++p) {
        wgmma_bf16(part, split.low[p], parts + 2 * p, p > 0);
        wgmma_bf16(part, split.high[p], parts + 4 + 2 * p, true);
    }
    wgmma_commit();
    wgmma_wait<0>();
    wgmma_fence();
#pragma unroll
    for (int s = 0; s < kDepth / 8; ++s) {
        wgmma_tf32(part, split.rounded[s], tall + 2 * s, true);
    }
    wgmma_commit();
    end_turn<kSamples>(pair);
    wgmma_wait<0>();
}

__device__ __forceinline__ void add(float4& sum, float4 v)
{
    sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
}

// A block's tile, its first output and sample, and which of the tile's pieces it is.
struct Place {
    unsigned tile, piece, pieces;
    int output, sample;
};

// The slots of a ring: filled by the copy engine; filled and split; read.
template <int kRing> struct Slots {
    Barrier arrived[kRing], full[kRing], empty[kRing];
    bool valid[kRing];
};

// A block with tickets: its warps have different functions of these.
template <int kGroups, int kSamples, int kRing> struct Tickets {
    using Ring = Stage<kGroups, kSamples>;
    static constexpr int kDeep = kSlabs<kGroups>;
    const TensorMap &weights, &input;
    Ring* stages;
    Slots<kRing>& slots;
    Place at;
    unsigned all;  // stages of the tile

    // The first stages of a block are given: there are no tickets for those.
    __device__ __forceinline__ unsigned given() const
    {
        return min((all - at.piece + at.pieces - 1) / at.pieces, kRing);
    }

    // Copies a stage of the tile into the ring, as the block's i-th.
    __device__ __forceinline__ void copy(unsigned i, unsigned stage) const
    {
        Ring& to = stages[i % kRing];
        Barrier *arrived = &slots.arrived[i % kRing], *full = &slots.full[i % kRing];
        slots.valid[i % kRing] = true;
        mbarrier_arrive_expect(arrived, kDeep * sizeof(to.input[0].whole));
        mbarrier_arrive_expect(full, sizeof(to.weights));
#pragma unroll
        for (int s = 0; s < kDeep; ++s) {
            const int from = (stage * kDeep + s) * kDepth;
            tma_load(to.input[s].whole, input, from, at.sample, arrived);
            tma_load_once(to.weights[s], weights, from, at.output, full);
        }
    }

    // All threads; the first copies are under way when they meet.
    __device__ __forceinline__ void begin() const
    {
        if (threadIdx.x == kConsumers) {
            tma_prefetch(weights);
            tma_prefetch(input);
            for (int s = 0; s < kRing; ++s) {
                mbarrier_init(&slots.arrived[s], 1);
                mbarrier_init(&slots.full[s], 1 + kSplitters);
                mbarrier_init(&slots.empty[s], kConsumers / kWarp);
            }
            fence_mbarrier_init();
#pragma unroll 1
            for (unsigned i = 0; i < given(); ++i) copy(i, at.piece + i * at.pieces);
        }
        __syncthreads();
    }

    __device__ __forceinline__ unsigned draw(unsigned i) const
    {
        if (at.pieces == 1) return i;
        return at.pieces * kRing + atomicAdd(&stages_taken[at.tile], 1u);
    }

    // One thread draws and copies.
    __device__ __forceinline__ void draw_and_copy() const
    {
        unsigned i = given();
        unsigned stage = draw(i);
#pragma unroll 1
        for (; stage < all; ++i) {
            const unsigned next = draw(i + 1);  // ahead, because it takes long
            mbarrier_wait(&slots.empty[i % kRing], i / kRing % 2 ^ 1);
            copy(i, stage);
            stage = next;
        }
        mbarrier_wait(&slots.empty[i % kRing], i / kRing % 2 ^ 1);
        slots.valid[i % kRing] = false;
        mbarrier_arrive(&slots.arrived[i % kRing]);
        mbarrier_arrive(&slots.full[i % kRing]);
    }

    // kSplitters warps split the input.
    __device__ __forceinline__ void split(int splitter, int lane) const
    {
#pragma unroll 1
        for (unsigned i = 0;; ++i) {
            mbarrier_wait(&slots.arrived[i % kRing], i / kRing % 2);
            const bool more = slots.valid[i % kRing];
            constexpr int kEach = kDepth / 8 / kSplitters;
#pragma unroll 1
            for (int n = lane; more && n < kDeep * kSamples; n += kWarp) {
                Slab<kSamples>& slab = stages[i % kRing].input[n / kSamples];
#pragma unroll
                for (int e = 0; e < kEach; ++e) {
                    split_eight(slab, n % kSamples, splitter * kEach + e);
                }
            }
            fence_proxy_async();
            __syncwarp();
            if (lane == 0) mbarrier_arrive(&slots.full[i % kRing]);
            if (!more) break;
        }
    }

    // The other warps than the consumers.
    __device__ __forceinline__ void feed(int warp, int lane) const
    {
        release_registers<64>();
        const int role = warp - kConsumers / kWarp;
        if (role == 0 && lane == 0) {
            draw_and_copy();
        } else if (role >= 1 && role <= kSplitters) {
            split(role - 1, lane);
        }
    }

    // Consumers: a lane's sums over all stages that the block draws.
    __device__ __forceinline__ void add_stages(
        float (&total)[kSamples / 2], int warp, int lane) const
    {
        claim_registers<104>();
        const int slab = warp / 4 / kGroups;
        const int row = warp / 4 % kGroups * 64 + warp % 4 * 16;  // the warp's first
#pragma unroll
        for (int j = 0; j < kSamples / 2; ++j) total[j] = 0.0f;
        if (warp >= 8) end_turn<kSamples>(1);  // the first pair begins
#pragma unroll 1
        for (unsigned i = 0;; ++i) {
            mbarrier_wait(&slots.full[i % kRing], i / kRing % 2);
            if (!slots.valid[i % kRing]) break;
            const Ring& stage = stages[i % kRing];
            float part[kSamples / 2];
            multiply(part, stage.weights[slab], row + lane % 16, lane / 16,
                     stage.input[slab], warp / 8);
            __syncwarp();
            if (lane == 0) mbarrier_arrive(&slots.empty[i % kRing]);
#pragma unroll
            for (int j = 0; j < kSamples / 2; ++j) total[j] += part[j];
        }
        if (warp < 8) begin_turn<kSamples>(0);  // as many turns begin as end
    }
};
