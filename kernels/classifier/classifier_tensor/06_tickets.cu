// Idea: blocks draw tickets for their next stage, and the last one of a tile adds up.
// From the rung before: no clusters. Some SMs get bytes faster than others; blocks take
// the next stage of their tile as soon as they have room, so that all end at the same
// time, and one launch will do. Tiles have 64, 128 or 256 outputs and up to 64 samples.
// The order of additions depends on who took what: results differ by rounding.
// Requires: sm_90a; a block of kThreads threads; a grid of tiles of 64 kGroups outputs,
// of pieces and of groups of kSamples, with at most kMostTiles tiles where there are
// several pieces; tensor maps with boxes of 64 kGroups or kSamples lines of kDepth
// floats, swizzled by 128 bytes; dynamic shared memory for kStages stages; `sums` for
// whole tiles; one launch at a time, because launches share the counters. From
// 2^128 - 2^119 on, numbers are infinite in bfloat16, and give NaN.
#include "../../common/warp.cuh"
#include "corrections.cuh"

constexpr int kConsumers = 512;
constexpr int kThreads = kConsumers + 128;
constexpr int kSplitters = 2;  // warps
constexpr int kMostTiles = 132;

// Tickets that were drawn. The last block of a tile makes them zero again: atomicInc
// wraps the second.
__device__ unsigned stages_taken[kMostTiles];
__device__ unsigned pieces_done[kMostTiles][4];

// Four warpgroups have 64 outputs each of as many slabs as that leaves.
template <int kGroups> constexpr int kSlabs = 4 / kGroups;
// Three fit into shared memory where a stage has four slabs of samples.
template <int kGroups> constexpr int kStages = kGroups == 1 ? 3 : 4;

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

template <int kGroups, int kSamples>
__global__ void __launch_bounds__(kThreads, 1)
    classifier_tickets(const __grid_constant__ TensorMap weights,
                       const __grid_constant__ TensorMap input,
                       float4* __restrict__ sums, float* __restrict__ output,
                       int inputs, int outputs, int batch)
{
    constexpr int kRing = kStages<kGroups>;
    constexpr int kDeep = kSlabs<kGroups>;
    using Ring = Stage<kGroups, kSamples>;
    extern __shared__ __align__(1024) unsigned char memory[];
    Ring* stages = reinterpret_cast<Ring*>(memory);
    // Filled by the copy engine; filled and split; read.
    __shared__ Barrier arrived[kRing], full[kRing], empty[kRing];
    __shared__ bool valid[kRing], last[kGroups];
    const int lane = threadIdx.x % kWarp;
    const int warp = __shfl_sync(~0u, threadIdx.x / kWarp, 0);
    const unsigned all = (inputs + kDeep * kDepth - 1) / (kDeep * kDepth);
    const unsigned pieces = gridDim.y;
    const unsigned tile = blockIdx.z * gridDim.x + blockIdx.x;
    // The first stages of a block are given: there are no tickets for those.
    const unsigned given = min((all - blockIdx.y + pieces - 1) / pieces, kRing);
    const auto copy = [&](unsigned i, unsigned stage) {
        Ring& to = stages[i % kRing];
        valid[i % kRing] = true;
        mbarrier_arrive_expect(&arrived[i % kRing], kDeep * sizeof(to.input[0].whole));
        mbarrier_arrive_expect(&full[i % kRing], sizeof(to.weights));
#pragma unroll
        for (int s = 0; s < kDeep; ++s) {
            const int from = (stage * kDeep + s) * kDepth;
            tma_load(to.input[s].whole, input, from, blockIdx.z * kSamples,
                     &arrived[i % kRing]);
            tma_load_once(to.weights[s], weights, from, blockIdx.x * 64 * kGroups,
                          &full[i % kRing]);
        }
    };
    if (threadIdx.x == kConsumers) {
        tma_prefetch(weights);
        tma_prefetch(input);
        for (int s = 0; s < kRing; ++s) {
            mbarrier_init(&arrived[s], 1);
            mbarrier_init(&full[s], 1 + kSplitters);
            mbarrier_init(&empty[s], kConsumers / kWarp);
        }
        fence_mbarrier_init();
#pragma unroll 1
        for (unsigned i = 0; i < given; ++i) copy(i, blockIdx.y + i * pieces);
    }
    __syncthreads();
    if (warp >= kConsumers / kWarp) {
        release_registers<32>();
        const int role = warp - kConsumers / kWarp;
        if (role == 0 && lane == 0) {  // copies
            const auto draw = [&](unsigned i) {
                if (pieces == 1) return i;
                return pieces * kRing + atomicAdd(&stages_taken[tile], 1u);
            };
            unsigned i = given;
            unsigned stage = draw(i);
#pragma unroll 1
            for (; stage < all; ++i) {
                const unsigned next = draw(i + 1);  // ahead, because it takes long
                mbarrier_wait(&empty[i % kRing], i / kRing % 2 ^ 1);
                copy(i, stage);
                stage = next;
            }
            mbarrier_wait(&empty[i % kRing], i / kRing % 2 ^ 1);
            valid[i % kRing] = false;
            mbarrier_arrive(&arrived[i % kRing]);
            mbarrier_arrive(&full[i % kRing]);
        } else if (role >= 1 && role <= kSplitters) {  // splits the input
#pragma unroll 1
            for (unsigned i = 0;; ++i) {
                mbarrier_wait(&arrived[i % kRing], i / kRing % 2);
                const bool more = valid[i % kRing];
                constexpr int kEach = kDepth / 8 / kSplitters;
#pragma unroll 1
                for (int n = lane; more && n < kDeep * kSamples; n += kWarp) {
                    Slab<kSamples>& slab = stages[i % kRing].input[n / kSamples];
#pragma unroll
                    for (int e = 0; e < kEach; ++e) {
                        split_eight(slab, n % kSamples, (role - 1) * kEach + e);
                    }
                }
                fence_proxy_async();
                __syncwarp();
                if (lane == 0) mbarrier_arrive(&full[i % kRing]);
                if (!more) break;
            }
        }
        return;
    }
    claim_registers<112>();
    const int slab = warp / 4 / kGroups;
    const int group = warp / 4 % kGroups;
    const int row = group * 64 + warp % 4 * 16;  // the warp's first of the tile
    float total[kSamples / 2] = {};
    if (warp >= 8) end_turn<kSamples>(1);  // the first pair begins
#pragma unroll 1
    for (unsigned i = 0;; ++i) {
        mbarrier_wait(&full[i % kRing], i / kRing % 2);
        if (!valid[i % kRing]) break;
        const Ring& stage = stages[i % kRing];
        float part[kSamples / 2];
        multiply(part, stage.weights[slab], row + lane % 16, lane / 16,
                 stage.input[slab], warp / 8);
        __syncwarp();
        if (lane == 0) mbarrier_arrive(&empty[i % kRing]);
#pragma unroll
        for (int j = 0; j < kSamples / 2; ++j) total[j] += part[j];
    }
    if (warp < 8) begin_turn<kSamples>(0);  // as many turns begin as end

    constexpr int kChunks = kSamples / 8;       // of a lane, four sums each
    constexpr int kOwn = kChunks / kDeep;       // that it adds up
    constexpr int kQuads = 128 * kGroups;       // of a chunk
    const int quad = group * 128 + threadIdx.x % 128;
    const int first = slab * kOwn;
    float4 own[kOwn];
    if constexpr (kDeep == 1) {
#pragma unroll
        for (int j = 0; j < kOwn; ++j) {
            own[j] = make_float4(total[4 * j], total[4 * j + 1], total[4 * j + 2],
                                 total[4 * j + 3]);
        }
    } else {
        sync_some(7, kConsumers);  // all reads of the ring are done: sums replace it
        float4* shared = reinterpret_cast<float4*>(memory);
#pragma unroll
        for (int j = 0; j < kChunks; ++j) {
            shared[(slab * kChunks + j) * kQuads + quad] = make_float4(
                total[4 * j], total[4 * j + 1], total[4 * j + 2], total[4 * j + 3]);
        }
        sync_some(1 + group, 128 * kDeep);  // all slabs' sums are stored
#pragma unroll
        for (int j = 0; j < kOwn; ++j) {
            own[j] = shared[(first + j) * kQuads + quad];
#pragma unroll
            for (int s = 1; s < kDeep; ++s) {
                add(own[j], shared[(s * kChunks + first + j) * kQuads + quad]);
            }
        }
    }
    if (pieces > 1) {
        const size_t apart = size_t{gridDim.x} * gridDim.z * kChunks * kQuads;
        float4* mine = sums + (tile * kChunks + first) * kQuads + quad;
#pragma unroll
        for (int j = 0; j < kOwn; ++j) mine[blockIdx.y * apart + j * kQuads] = own[j];
        __threadfence();  // the sums are visible before the ticket is drawn
        sync_some(1 + group, 128 * kDeep);
        const bool draws = slab == 0 && threadIdx.x % 128 == 0;
        if (draws) {
            unsigned* done = &pieces_done[tile][group];
            last[group] = atomicInc(done, pieces - 1) == pieces - 1;
        }
        sync_some(1 + group, 128 * kDeep);
        if (!last[group]) return;
        __threadfence();  // no sum is read before the ticket was drawn
#pragma unroll
        for (int j = 0; j < kOwn; ++j) own[j] = {};
#pragma unroll 8 / kOwn
        for (unsigned piece = 0; piece < pieces; ++piece) {
#pragma unroll
            for (int j = 0; j < kOwn; ++j) {
                add(own[j], __ldcg(mine + piece * apart + j * kQuads));
            }
        }
        if (draws && group == 0) stages_taken[tile] = 0;  // for the next launch
    }
    // A lane's four sums are of two samples and of two outputs, eight apart.
    const int out = blockIdx.x * 64 * kGroups + row + lane / 4;
#pragma unroll
    for (int j = 0; j < kOwn; ++j) {
        const int sample = blockIdx.z * kSamples + (first + j) * 8 + lane % 4 * 2;
        float* to = output + static_cast<size_t>(sample) * outputs + out;
        if (out < outputs) {
            if (sample < batch) to[0] = own[j].x;
            if (sample + 1 < batch) to[outputs] = own[j].y;
        }
        if (out + 8 < outputs) {
            if (sample < batch) to[8] = own[j].z;
            if (sample + 1 < batch) to[outputs + 8] = own[j].w;
        }
    }
}
