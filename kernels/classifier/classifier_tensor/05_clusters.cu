// Idea: a cluster of blocks adds up its pieces in shared memory, so one launch will do.
// From the rung before: 320 outputs a block, in clusters of eight pieces of the inputs,
// which fit on the GPU at the same time; the input is read 13 times, not 32; no sums go
// to memory, and there is no second pass.
// Requires: sm_90a; a block of kThreads threads; a grid of clusters, for tiles of
// outputs and groups of samples; tensor maps with boxes of kBoxRows or kBatch lines of
// kDepth floats, swizzled by 128 bytes; dynamic shared memory for kStages stages. From
// 2^128 - 2^119 on, numbers are infinite in bfloat16, and give NaN.
#include "../../common/hopper/cluster.cuh"
#include "../../common/warp.cuh"
#include "corrections.cuh"

constexpr int kGroups = 5;  // warpgroups that multiply, 64 outputs each
constexpr int kTileRows = 64 * kGroups;
constexpr int kBoxRows = kTileRows / 2;  // a box has at most 256
constexpr int kStages = 4;
constexpr int kConsumers = 128 * kGroups;
constexpr int kThreads = kConsumers + 128;
constexpr int kSplitters = 2;  // warps
constexpr int kChain = 2;      // stages whose high parts are summed in tensor cores
constexpr int kSumPitch = kTileRows + 4;

// The samples of a slab: rounded up; low parts; as they are, in bfloat16, half of rows
// of 128 bytes.
struct Lines {
    float whole[kBatch * kDepth], low[kBatch * kDepth];
    uint4 narrow[kBatch * 8];
};
struct alignas(1024) Stage {
    float weights[kTileRows * kDepth];
    Lines input;
};
static_assert(kBatch * kSumPitch * sizeof(float) <= kStages * sizeof(Stage),
              "the ring has room for the sums");

// Splits eight inputs of a sample.
__device__ __forceinline__ void split_lines(Lines& lines, int sample, int eight)
{
    float values[8];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const int at = sample * 8 + ((2 * eight + i) ^ sample % 8);
        float4& quad = reinterpret_cast<float4*>(lines.whole)[at];
        reinterpret_cast<float4*>(values)[i] = quad;
        unsigned rounded[4];
        float low[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            rounded[j] = round_up(values[4 * i + j]);
            low[j] = values[4 * i + j] - high_part(rounded[j]);
        }
        reinterpret_cast<uint4&>(quad) = reinterpret_cast<const uint4&>(rounded);
        reinterpret_cast<float4*>(lines.low)[at] =
            reinterpret_cast<const float4&>(low);
    }
    unsigned pairs[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) pairs[j] = pack_bf16(values[j], values[j + 4]);
    lines.narrow[sample * 8 + (eight ^ sample % 8)] =
        reinterpret_cast<const uint4&>(pairs);
}

// Adds the products of a warpgroup's 64 lines of weights with a slab of the samples, as
// multiply_slab does; high parts meet low parts in TF32, which takes fewer registers.
__device__ __forceinline__ void multiply_lines(
    Sums& sums, const float* weights, int row, int quad, const Lines& lines, bool more,
    bool more_corrections)
{
    unsigned rounded[kDepth / 8][4], low[kDepth / 16][4];
#pragma unroll
    for (int s = 0; s < kDepth / 8; ++s) {
        load_matrices(rounded[s],
                      weights + row * kDepth + ((2 * s + quad) ^ row % 8) * 4);
    }
#pragma unroll
    for (int s = 0; s < kDepth / 8; ++s) {
        float small[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const float value = __uint_as_float(rounded[s][j]);
            rounded[s][j] = round_up(value);
            small[j] = value - high_part(rounded[s][j]);
        }
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            low[s / 2][s % 2 * 2 + j] = pack_bf16(small[j], small[j + 2]);
        }
    }
    const Descriptor whole = describe_rows_of_k(lines.whole);
    const Descriptor lower = describe_rows_of_k(lines.low);
    const Descriptor narrow = describe_rows_of_k(lines.narrow);
    wgmma_fence();
#pragma unroll
    for (int p = 0; p < kDepth / 16; ++p) {
        wgmma_bf16(sums.corrections, low[p], narrow + 2 * p, more_corrections || p > 0);
    }
#pragma unroll
    for (int s = 0; s < kDepth / 8; ++s) {
        wgmma_tf32(sums.high, rounded[s], lower + 2 * s, more || s > 0);
        wgmma_tf32(sums.high, rounded[s], whole + 2 * s, true);
    }
    wgmma_commit();
    wgmma_wait<0>();
}

__device__ __forceinline__ void sync_consumers()
{
    asm volatile("bar.sync 1, %0;" ::"n"(kConsumers) : "memory");
}

template <int kPieces>
__global__ void __cluster_dims__(kPieces) __launch_bounds__(kThreads, 1)
    classifier_clusters(const __grid_constant__ TensorMap weights,
                        const __grid_constant__ TensorMap input,
                        float* __restrict__ output, int inputs, int outputs, int batch)
{
    extern __shared__ __align__(1024) Stage stages[];
    // Filled by the copy engine; filled and split; read.
    __shared__ Barrier arrived[kStages], full[kStages], empty[kStages];
    const int lane = threadIdx.x % kWarp;
    const int warp = __shfl_sync(~0u, threadIdx.x / kWarp, 0);
    const int piece = blockIdx.x % kPieces, tile = blockIdx.x / kPieces;
    const int down = (batch + kBatch - 1) / kBatch;
    const int first_sample = tile % down * kBatch, first_row = tile / down * kTileRows;
    const int all = (inputs + kDepth - 1) / kDepth;
    const int first = static_cast<long long>(piece) * all / kPieces;
    const int last = static_cast<long long>(piece + 1) * all / kPieces;
    const unsigned count = last - first;
    if (threadIdx.x == kConsumers) {
        tma_prefetch(weights);
        tma_prefetch(input);
        for (int s = 0; s < kStages; ++s) {
            mbarrier_init(&arrived[s], 1);
            mbarrier_init(&full[s], 1 + kSplitters);
            mbarrier_init(&empty[s], kConsumers / kWarp);
        }
        fence_mbarrier_init();
    }
    __syncthreads();
    if (warp >= kConsumers / kWarp) {
        release_registers<40>();
        const int role = warp - kConsumers / kWarp;
        if (role == 0 && lane == 0) {  // copies
            for (unsigned i = 0; i < count; ++i) {
                const int slot = i % kStages, from = (first + i) * kDepth;
                mbarrier_wait(&empty[slot], i / kStages % 2 ^ 1);
                Stage& stage = stages[slot];
                mbarrier_arrive_expect(&arrived[slot], sizeof(Lines::whole));
                mbarrier_arrive_expect(&full[slot], sizeof(stage.weights));
                tma_load(stage.input.whole, input, from, first_sample, &arrived[slot]);
                tma_load(stage.weights, weights, from, first_row, &full[slot]);
                tma_load(stage.weights + kBoxRows * kDepth, weights, from,
                         first_row + kBoxRows, &full[slot]);
            }
        } else if (role >= 1 && role <= kSplitters) {  // splits the input
            for (unsigned i = 0; i < count; ++i) {
                const int slot = i % kStages;
                mbarrier_wait(&arrived[slot], i / kStages % 2);
#pragma unroll
                for (int e = 0; e < kDepth / 8 / kSplitters; ++e) {
                    split_lines(stages[slot].input, lane, e * kSplitters + role - 1);
                }
                fence_proxy_async();
                __syncwarp();
                if (lane == 0) mbarrier_arrive(&full[slot]);
            }
        }
        __syncwarp();
        if constexpr (kPieces > 1) cluster_sync();
    } else {
        claim_registers<88>();
        Sums part;
        float total[kBatch / 2] = {};
#pragma unroll 1
        for (unsigned i = 0; i < count; ++i) {
            const int slot = i % kStages;
            mbarrier_wait(&full[slot], i / kStages % 2);
            const Stage& stage = stages[slot];
            multiply_lines(part, stage.weights, warp * 16 + lane % 16, lane / 16,
                           stage.input, i % kChain > 0, i > 0);
            __syncwarp();
            if (lane == 0) mbarrier_arrive(&empty[slot]);
            if (i % kChain == kChain - 1 || i == count - 1) {
#pragma unroll
                for (int j = 0; j < kBatch / 2; ++j) total[j] += part.high[j];
            }
        }
        if (count > 0) {
#pragma unroll
            for (int j = 0; j < kBatch / 2; ++j) total[j] += part.corrections[j];
        }
        sync_consumers();  // all reads of the ring are done: sums replace the stages
        float* shared = reinterpret_cast<float*>(stages);
#pragma unroll
        for (int j = 0; j < kBatch / 2; ++j) {
            const int sample = j / 4 * 8 + lane % 4 * 2 + j % 2;
            const int row = warp * 16 + lane / 4 + j / 2 % 2 * 8;
            shared[sample * kSumPitch + row] = total[j];
        }
        if constexpr (kPieces > 1) {
            cluster_sync();
        } else {
            sync_consumers();
        }
        // Each block adds up a share of the tile, always in the same order.
        constexpr int kQuads = kBatch * kTileRows / 4;
        constexpr int kShare = (kQuads + kPieces - 1) / kPieces;
        for (int n = threadIdx.x; n < kShare; n += kConsumers) {
            const int quad = piece * kShare + n;
            const int s = quad / (kTileRows / 4), r = quad % (kTileRows / 4) * 4;
            if (s >= kBatch) break;
            float sum[4] = {};
#pragma unroll
            for (int p = 0; p < kPieces; ++p) {
                const float* from = shared + s * kSumPitch + r;
                if constexpr (kPieces > 1) from = at_rank(from, p);
                const float4 v = *reinterpret_cast<const float4*>(from);
                sum[0] += v.x, sum[1] += v.y, sum[2] += v.z, sum[3] += v.w;
            }
            if (first_sample + s >= batch) continue;
            float* to = output + static_cast<size_t>(first_sample + s) * outputs;
            if (outputs % 4 == 0 && first_row + r < outputs) {
                *reinterpret_cast<float4*>(to + first_row + r) =
                    make_float4(sum[0], sum[1], sum[2], sum[3]);
            } else {
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    if (first_row + r + j < outputs) to[first_row + r + j] = sum[j];
                }
            }
        }
    }
    if constexpr (kPieces > 1) cluster_sync();  // before shared memory goes away
}
