// Idea: all blocks of a tile add up its pieces, each a share of the outputs.
// From the rung before: tiles have 256 outputs also where 32 samples are enough, which
// halves the reads of the input. Such a tile has twice as many pieces, twice as large,
// and its last block would read 256 KB while no other has anything to do. So the blocks
// of a tile wait for each other, and each adds up a share of all pieces.
// Requires: sm_90a; a block of kThreads threads; a grid of pieces, of tiles of 256
// outputs and of groups of kSamples, with at most kMostTiles tiles where there are
// several pieces, which run at the same time; tensor maps with boxes of 256 or kSamples
// lines of kDepth floats, swizzled by 128 bytes; dynamic shared memory for kStages
// stages; `sums` for whole tiles; one launch at a time, because launches share the
// counters. From 2^128 - 2^119 on, numbers are infinite in bfloat16, and give NaN.
#include "../../common/meeting.cuh"
#include "tickets.cuh"

constexpr int kGroups = 4;
// Those that fit into shared memory.
template <int kSamples> constexpr int kStages = kSamples == 32 ? 5 : 4;

// Blocks that have met, by tile and group of warps.
__device__ unsigned meetings[kMostTiles][kGroups];

template <int kSamples>
__global__ void __launch_bounds__(kThreads, 1)
    classifier_shares(const __grid_constant__ TensorMap weights,
                      const __grid_constant__ TensorMap input,
                      float4* __restrict__ sums, float* __restrict__ output,
                      int inputs, int outputs, int batch)
{
    extern __shared__ __align__(1024) unsigned char memory[];
    __shared__ Slots<kStages<kSamples>> slots;
    const unsigned piece = blockIdx.x, pieces = gridDim.x;
    const unsigned tile = blockIdx.z * gridDim.y + blockIdx.y;
    const int out = blockIdx.y * 64 * kGroups, sample = blockIdx.z * kSamples;
    const int lane = threadIdx.x % kWarp;
    const int warp = __shfl_sync(~0u, threadIdx.x / kWarp, 0);
    using Own = Tickets<kGroups, kSamples, kStages<kSamples>>;
    const Own tickets = {weights, input,
                         reinterpret_cast<typename Own::Ring*>(memory), slots,
                         {tile, piece, pieces, out, sample},
                         (inputs + kDepth - 1u) / kDepth};
    tickets.begin();
    if (warp >= kConsumers / kWarp) {
        tickets.feed(warp, lane);
        return;
    }
    float total[kSamples / 2];
    tickets.add_stages(total, warp, lane);
    constexpr int kChunks = kSamples / 8;  // of a lane, four sums each
    constexpr int kQuads = kChunks * 128;  // of a group
    const int group = threadIdx.x / 128, thread = threadIdx.x % 128;
    // The four sums of a lane are of two samples and of two outputs, eight apart.
    const auto store = [&](float4 sum, int quad) {
        const int whose = quad % kWarp;  // lane
        const int o = out + group * 64 + quad % 128 / kWarp * 16 + whose / 4;
        const int s = sample + quad / 128 * 8 + whose % 4 * 2;
        float* to = output + static_cast<size_t>(s) * outputs + o;
        if (o < outputs) {
            if (s < batch) to[0] = sum.x;
            if (s + 1 < batch) to[outputs] = sum.y;
        }
        if (o + 8 < outputs) {
            if (s < batch) to[8] = sum.z;
            if (s + 1 < batch) to[outputs + 8] = sum.w;
        }
    };
    const size_t apart = size_t{gridDim.y} * gridDim.z * kGroups * kQuads;  // pieces
    float4* mine = sums + (tile * kGroups + group) * kQuads;
    unsigned before = 0;
    if (thread == 0 && pieces > 1) before = look_at(&meetings[tile][group]);
#pragma unroll
    for (int j = 0; j < kChunks; ++j) {
        const float4 own = make_float4(total[4 * j], total[4 * j + 1],
                                       total[4 * j + 2], total[4 * j + 3]);
        if (pieces == 1) {
            store(own, j * 128 + thread);
        } else {
            mine[piece * apart + j * 128 + thread] = own;
        }
    }
    if (pieces == 1) return;
    sync_some(1 + group, 128);
    if (thread == 0) {
        meet_others(&meetings[tile][group], before, pieces, piece == 0);
        if (piece == 0 && group == 0) stages_taken[tile] = 0;  // for the next launch
    }
    sync_some(1 + group, 128);
    const int share = (kQuads + pieces - 1) / pieces;
    const int end = min(kQuads, (static_cast<int>(piece) + 1) * share);
    for (int quad = piece * share + thread; quad < end; quad += 128) {
        float4 sum = {};
#pragma unroll 8
        for (unsigned p = 0; p < pieces; ++p) {
            add(sum, __ldcg(mine + p * apart + quad));
        }
        store(sum, quad);
    }
}
