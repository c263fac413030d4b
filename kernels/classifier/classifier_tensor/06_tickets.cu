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
#include "tickets.cuh"

// Pieces that are done. atomicInc makes the counter zero again.
__device__ unsigned pieces_done[kMostTiles][4];

// Three fit into shared memory where a stage has four slabs of samples.
template <int kGroups> constexpr int kStages = kGroups == 1 ? 3 : 4;

template <int kGroups, int kSamples>
__global__ void __launch_bounds__(kThreads, 1)
    classifier_tickets(const __grid_constant__ TensorMap weights,
                       const __grid_constant__ TensorMap input,
                       float4* __restrict__ sums, float* __restrict__ output,
                       int inputs, int outputs, int batch)
{
    constexpr int kDeep = kSlabs<kGroups>;
    extern __shared__ __align__(1024) unsigned char memory[];
    __shared__ Slots<kStages<kGroups>> slots;
    __shared__ bool last[kGroups];
    const unsigned pieces = gridDim.y;
    const unsigned tile = blockIdx.z * gridDim.x + blockIdx.x;
    const int output_of = blockIdx.x * 64 * kGroups, sample_of = blockIdx.z * kSamples;
    const int lane = threadIdx.x % kWarp;
    const int warp = __shfl_sync(~0u, threadIdx.x / kWarp, 0);
    using Own = Tickets<kGroups, kSamples, kStages<kGroups>>;
    const Own tickets = {weights, input,
                         reinterpret_cast<typename Own::Ring*>(memory), slots,
                         {tile, blockIdx.y, pieces, output_of, sample_of},
                         (inputs + kDeep * kDepth - 1u) / (kDeep * kDepth)};
    tickets.begin();
    if (warp >= kConsumers / kWarp) {
        tickets.feed(warp, lane);
        return;
    }
    float total[kSamples / 2];
    tickets.add_stages(total, warp, lane);
    const int slab = warp / 4 / kGroups;
    const int group = warp / 4 % kGroups;
    const int row = group * 64 + warp % 4 * 16;  // the warp's first of the tile

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
