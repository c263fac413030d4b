// Idea: blocks of a row read neighbouring bytes at the same time, all samples at once.
// From the rung before: no clusters; eight blocks share a row and take turns at its
// slabs, so that together they read long runs of it; a tile has all of up to 64
// samples; a lane's sums go to memory as they lie in its registers, and the second pass
// puts them in order.
// Requires: sm_90a; a block of kThreads threads; a grid of tiles of outputs, of pieces
// of the inputs and of groups of kSamples; tensor maps with boxes of kTileRows or
// kSamples lines of kDepth floats, swizzled by 128 bytes; dynamic shared memory for
// kStages stages; `sums` for whole tiles. From 2^128 - 2^119 on, numbers are infinite
// in bfloat16, and give NaN.
#include "../../common/hopper/dependent.cuh"
#include "../../common/warp.cuh"
#include "corrections.cuh"

constexpr int kGroups = 4;  // warpgroups that multiply, 64 outputs each
constexpr int kTileRows = 64 * kGroups;
constexpr int kConsumers = 128 * kGroups;
constexpr int kThreads = kConsumers + 128;
constexpr int kSplitters = 2;  // warps

// As many stages as fit into 227 KB.
template <int kSamples> constexpr int kStages = kSamples == 32 ? 5 : 4;

// A slab of samples, as corrections.cuh has it for 32.
template <int kSamples> struct Slab {
    float whole[kSamples * kDepth];  // as they come, then rounded up
    uint4 parts[kSamples * 8];       // rows of 32 high and 32 low parts
};
template <int kSamples> struct alignas(1024) Stage {
    float weights[kTileRows * kDepth];
    Slab<kSamples> input;
};

// Splits eight inputs of a sample.
template <int kSamples>
__device__ __forceinline__ void split_inputs(
    Slab<kSamples>& slab, int sample, int eight)
{
    float values[8], lows[8];
    float4* quads = reinterpret_cast<float4*>(slab.whole) + sample * 8;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        float4& quad = quads[(2 * eight + i) ^ sample % 8];
        reinterpret_cast<float4*>(values)[i] = quad;
        unsigned rounded[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            rounded[j] = round_up(values[4 * i + j]);
            lows[4 * i + j] = values[4 * i + j] - high_part(rounded[j]);
        }
        reinterpret_cast<uint4&>(quad) = reinterpret_cast<const uint4&>(rounded);
    }
    unsigned whole[4], low[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        whole[j] = pack_bf16(values[j], values[j + 4]);
        low[j] = pack_bf16(lows[j], lows[j + 4]);
    }
    uint4* row = slab.parts + sample * 8;
    row[eight ^ sample % 8] = make_uint4(whole[0], whole[1], whole[2], whole[3]);
    row[(4 + eight) ^ sample % 8] = make_uint4(low[0], low[1], low[2], low[3]);
}

// The products of a warpgroup's 64 lines of weights with a slab of the samples: first
// the corrections, then the high parts on top of them. Products of 8 and of 16 inputs
// may not be in flight together on the same registers.
template <int kSamples>
__device__ __forceinline__ void multiply(
    float (&part)[kSamples / 2], const float* weights, int row, int quad,
    const Slab<kSamples>& slab)
{
    unsigned rounded[kDepth / 8][4], high[kDepth / 16][4], low[kDepth / 16][4];
#pragma unroll
    for (int s = 0; s < kDepth / 8; ++s) {
        load_matrices(rounded[s],
                      weights + row * kDepth + ((2 * s + quad) ^ row % 8) * 4);
    }
#pragma unroll
    for (int s = 0; s < kDepth / 8; ++s) {
        float tall[4], small[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const float value = __uint_as_float(rounded[s][j]);
            rounded[s][j] = round_up(value);
            tall[j] = high_part(rounded[s][j]);
            small[j] = value - tall[j];
        }
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            high[s / 2][s % 2 * 2 + j] = pack_bf16(tall[j], tall[j + 2]);
            low[s / 2][s % 2 * 2 + j] = pack_bf16(small[j], small[j + 2]);
        }
    }
    const Descriptor parts = describe_rows_of_k(slab.parts);
    const Descriptor tall = describe_rows_of_k(slab.whole);
    wgmma_fence();
#pragma unroll
    for (int p = 0; p < kDepth / 16; ++p) {
        wgmma_bf16(part, low[p], parts + 2 * p, p > 0);
        wgmma_bf16(part, high[p], parts + 4 + 2 * p, true);
    }
    wgmma_commit();
    wgmma_wait<0>();
    wgmma_fence();
#pragma unroll
    for (int s = 0; s < kDepth / 8; ++s) {
        wgmma_tf32(part, rounded[s], tall + 2 * s, true);
    }
    wgmma_commit();
    wgmma_wait<0>();
}

template <int kSamples>
__global__ void __launch_bounds__(kThreads, 1)
    classifier_interleaved(const __grid_constant__ TensorMap weights,
                           const __grid_constant__ TensorMap input,
                           float4* __restrict__ sums, int inputs)
{
    constexpr int kRing = kStages<kSamples>;
    extern __shared__ __align__(1024) unsigned char memory[];
    Stage<kSamples>* stages = reinterpret_cast<Stage<kSamples>*>(memory);
    // Filled by the copy engine; filled and split; read.
    __shared__ Barrier arrived[kRing], full[kRing], empty[kRing];
    start_next_launch();
    const int lane = threadIdx.x % kWarp;
    const int warp = __shfl_sync(~0u, threadIdx.x / kWarp, 0);
    // Slabs blockIdx.y, blockIdx.y + gridDim.y, ...
    const unsigned slabs = (inputs + kDepth - 1) / kDepth;
    const unsigned count = (slabs - blockIdx.y + gridDim.y - 1) / gridDim.y;
    const auto copy = [&](unsigned i) {
        Stage<kSamples>& stage = stages[i % kRing];
        const int from = (blockIdx.y + i * gridDim.y) * kDepth;
        mbarrier_arrive_expect(&arrived[i % kRing], sizeof(stage.input.whole));
        mbarrier_arrive_expect(&full[i % kRing], sizeof(stage.weights));
        tma_load(stage.input.whole, input, from, blockIdx.z * kSamples,
                 &arrived[i % kRing]);
        tma_load(stage.weights, weights, from, blockIdx.x * kTileRows,
                 &full[i % kRing]);
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
        for (unsigned i = 0; i < min(count, kRing); ++i) copy(i);
    }
    __syncthreads();
    if (warp >= kConsumers / kWarp) {
        release_registers<32>();
        const int role = warp - kConsumers / kWarp;
        if (role == 0 && lane == 0) {  // copies
#pragma unroll 1
            for (unsigned i = kRing; i < count; ++i) {
                mbarrier_wait(&empty[i % kRing], i / kRing % 2 ^ 1);
                copy(i);
            }
        } else if (role >= 1 && role <= kSplitters) {  // splits the input
#pragma unroll 1
            for (unsigned i = 0; i < count; ++i) {
                mbarrier_wait(&arrived[i % kRing], i / kRing % 2);
                constexpr int kEach = kDepth / 8 / kSplitters;
#pragma unroll 1
                for (int s = lane; s < kSamples; s += kWarp) {
#pragma unroll
                    for (int e = 0; e < kEach; ++e) {
                        split_inputs(stages[i % kRing].input, s,
                                     (role - 1) * kEach + e);
                    }
                }
                fence_proxy_async();
                __syncwarp();
                if (lane == 0) mbarrier_arrive(&full[i % kRing]);
            }
        }
    } else {
        claim_registers<112>();
        float total[kSamples / 2] = {};
#pragma unroll 1
        for (unsigned i = 0; i < count; ++i) {
            mbarrier_wait(&full[i % kRing], i / kRing % 2);
            const Stage<kSamples>& stage = stages[i % kRing];
            float part[kSamples / 2];
            multiply(part, stage.weights, warp * 16 + lane % 16, lane / 16,
                     stage.input);
            __syncwarp();
            if (lane == 0) mbarrier_arrive(&empty[i % kRing]);
#pragma unroll
            for (int j = 0; j < kSamples / 2; ++j) total[j] += part[j];
        }
        // [pieces][tiles][kSamples / 8][kConsumers].
        const unsigned tile = blockIdx.z * gridDim.x + blockIdx.x;
        const size_t piece = blockIdx.y * gridDim.z * gridDim.x;
        float4* to = sums + (piece + tile) * (kSamples / 8) * kConsumers + threadIdx.x;
#pragma unroll
        for (int j = 0; j < kSamples / 8; ++j) {
            to[j * kConsumers] = make_float4(total[4 * j], total[4 * j + 1],
                                             total[4 * j + 2], total[4 * j + 3]);
        }
    }
}

// The second pass: kParts threads add up the pieces of four sums, always in the same
// order: of two neighbouring samples and of two outputs, eight apart.
template <int kSamples, int kParts>
__global__ void __launch_bounds__(kParts* kWarp)
    add_interleaved(const float4* __restrict__ sums, float* __restrict__ output,
                    int outputs, int batch, int row_tiles, int pieces)
{
    __shared__ float4 shared[kParts][kWarp];
    const unsigned lane = threadIdx.x % kWarp;
    const unsigned part = threadIdx.x / kWarp;
    const unsigned at = blockIdx.x * kWarp + lane;
    const size_t quads = static_cast<size_t>(gridDim.x) * kWarp;
    const unsigned chunk = at / kConsumers % (kSamples / 8);
    const unsigned tile = at / kConsumers / (kSamples / 8);
    const int first_row = tile % row_tiles * kTileRows;
    const int row = first_row + at % kConsumers / kWarp * 16 + lane / 4;
    const int sample = tile / row_tiles * kSamples + chunk * 8 + lane % 4 * 2;
    wait_for_launch_before();
    float4 sum = {};
#pragma unroll 8
    for (int piece = part; piece < pieces; piece += kParts) {
        const float4 v = sums[piece * quads + at];
        sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
    }
    shared[part][lane] = sum;
    __syncthreads();  // all parts are stored before they are added up
    if (part > 0) return;
#pragma unroll
    for (int p = 1; p < kParts; ++p) {
        const float4 v = shared[p][lane];
        sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
    }
    float* to = output + static_cast<size_t>(sample) * outputs + row;
    if (row < outputs) {
        if (sample < batch) to[0] = sum.x;
        if (sample + 1 < batch) to[outputs] = sum.y;
    }
    if (row + 8 < outputs) {
        if (sample < batch) to[8] = sum.z;
        if (sample + 1 < batch) to[outputs + 8] = sum.w;
    }
}
