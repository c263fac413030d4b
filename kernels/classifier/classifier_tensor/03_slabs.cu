// Idea: longer runs of DRAM: of a row, a stage has 256 neighbouring bytes, not 128.
// From the rung before: 128 outputs a block, not 256; two warpgroups have one half of a
// stage's inputs, two the other; low parts of the weights meet only high parts of the
// input; the second pass is launched before this one ends.
// Requires: sm_90a; a block of kThreads threads; a grid of tiles of outputs, of pieces
// of the inputs and of groups of samples; tensor maps with boxes of kTileRows or kBatch
// lines of kDepth floats, swizzled by 128 bytes; dynamic shared memory for kStages
// stages. With one piece sums is the output.
#include "../../common/hopper/dependent.cuh"
#include "../../common/hopper/tma.cuh"
#include "../../common/hopper/wgmma_narrow.cuh"
#include "../../common/mma.cuh"
#include "../../common/warp.cuh"
#include "../store_by_rows.cuh"
#include "slot.cuh"
#include "split.cuh"

constexpr int kRowGroups = 2;  // of 64 outputs
constexpr int kSlabs = 2;      // of kDepth inputs; a warpgroup for both
constexpr int kTileRows = 64 * kRowGroups;
constexpr int kBatch = 32;
constexpr int kDepth = 32;  // inputs of a slab: rows of 128 bytes
constexpr int kStages = 4;
constexpr int kConsumers = 128 * kRowGroups * kSlabs;
constexpr int kThreads = kConsumers + 128;
constexpr int kSplitters = 2;  // warps
constexpr int kChain = 2;      // stages that are summed in tensor cores
constexpr int kSumPitch = kTileRows + 4;

struct alignas(1024) Stage {
    float weights[kSlabs][kTileRows * kDepth];
    float input[kSlabs][2][kBatch * kDepth];  // as it is, and its low parts
};
static_assert(kSlabs * kBatch * kSumPitch * sizeof(float) <= kStages * sizeof(Stage),
              "the ring has room for the sums");

extern "C" __global__ void __launch_bounds__(kThreads, 1)
    classifier_slabs(const __grid_constant__ TensorMap weights,
                     const __grid_constant__ TensorMap input, float* __restrict__ sums,
                     int inputs, int outputs, int batch, int stages_per_block)
{
    extern __shared__ __align__(1024) Stage stages[];
    // Filled by the copy engine; filled and split; read.
    __shared__ Barrier arrived[kStages], full[kStages], empty[kStages];
    start_next_launch();
    const int lane = threadIdx.x % kWarp;
    const int warp = __shfl_sync(~0u, threadIdx.x / kWarp, 0);
    const int first_row = blockIdx.x * kTileRows;
    const int first_sample = blockIdx.z * kBatch;
    const int first = blockIdx.y * stages_per_block;
    const int all = (inputs + kSlabs * kDepth - 1) / (kSlabs * kDepth);
    const int last = min(first + stages_per_block, all);
    if (threadIdx.x == 0) {
        for (int s = 0; s < kStages; ++s) {
            mbarrier_init(&arrived[s], 1);
            mbarrier_init(&full[s], 1 + kSplitters);
            mbarrier_init(&empty[s], kConsumers / kWarp);
        }
        fence_mbarrier_init();
    }
    __syncthreads();
    float total[kBatch / 2] = {};
    if (warp >= kConsumers / kWarp) {
        release_registers<40>();
        const int role = warp - kConsumers / kWarp;
        Slot<kStages> at;
        if (role == 0 && lane == 0) {  // copies
            for (int i = first; i < last; ++i, at.next()) {
                mbarrier_wait(&empty[at.slot], at.parity ^ 1);
                Stage& stage = stages[at.slot];
                mbarrier_arrive_expect(&arrived[at.slot], sizeof(stage.input) / 2);
                mbarrier_arrive_expect(&full[at.slot], sizeof(stage.weights));
#pragma unroll
                for (int s = 0; s < kSlabs; ++s) {
                    const int from = (i * kSlabs + s) * kDepth;
                    tma_load(stage.input[s][0], input, from, first_sample,
                             &arrived[at.slot]);
                    tma_load(stage.weights[s], weights, from, first_row,
                             &full[at.slot]);
                }
            }
        } else if (role >= 1 && role <= kSplitters) {  // splits the input
            constexpr int kQuads = kBatch * kDepth / 4;
            constexpr int kEach = kSlabs * kQuads / kSplitters / kWarp;
            for (int i = first; i < last; ++i, at.next()) {
                mbarrier_wait(&arrived[at.slot], at.parity);
                float4(*parts)[2][kQuads] =
                    reinterpret_cast<float4(*)[2][kQuads]>(stages[at.slot].input);
#pragma unroll 4
                for (int j = 0; j < kEach; ++j) {
                    const int quad = ((role - 1) * kEach + j) * kWarp + lane;
                    const float4 value = parts[quad / kQuads][0][quad % kQuads];
                    parts[quad / kQuads][1][quad % kQuads] =
                        make_float4(low_part(value.x), low_part(value.y),
                                    low_part(value.z), low_part(value.w));
                }
                fence_proxy_async();
                __syncwarp();
                if (lane == 0) mbarrier_arrive(&full[at.slot]);
            }
        }
        __syncwarp();
    } else {
        claim_registers<104>();
        // Of a lane, for ldmatrix: its row, and the first or the second quad of eight.
        const int slab = warp / (4 * kRowGroups);
        const int row = warp % (4 * kRowGroups) * 16 + lane % 16;
        const int quad = lane / 16;
        Slot<kStages> at;
        float part[kBatch / 2];
        for (int i = first; i < last; ++i, at.next()) {
            mbarrier_wait(&full[at.slot], at.parity);
            const Stage& stage = stages[at.slot];
            const float* line = stage.weights[slab] + row * kDepth;
            unsigned high[kDepth / 8][4], low[kDepth / 8][4];
#pragma unroll
            for (int s = 0; s < kDepth / 8; ++s) {
                const float* from = line + ((2 * s + quad) ^ row % 8) * 4;
                load_matrices(high[s], from);
            }
#pragma unroll
            for (int s = 0; s < kDepth / 8; ++s) {
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    low[s][j] = __float_as_uint(low_part(__uint_as_float(high[s][j])));
                }
            }
            const Descriptor tall = describe_rows_of_k(stage.input[slab][0]);
            const Descriptor small = describe_rows_of_k(stage.input[slab][1]);
            wgmma_fence();
#pragma unroll
            for (int s = 0; s < kDepth / 8; ++s) {
                wgmma_tf32(part, low[s], tall + 2 * s, (i - first) % kChain + s > 0);
                wgmma_tf32(part, high[s], small + 2 * s, true);
                wgmma_tf32(part, high[s], tall + 2 * s, true);
            }
            wgmma_commit();
            wgmma_wait<0>();
            __syncwarp();
            if (lane == 0) mbarrier_arrive(&empty[at.slot]);
            if ((i - first) % kChain == kChain - 1 || i == last - 1) {
#pragma unroll
                for (int j = 0; j < kBatch / 2; ++j) {
                    total[j] += part[j];
                }
            }
        }
    }
    __syncthreads();  // all reads of the ring are done before sums replace the stages
    using Sums = float[kSlabs][kBatch][kSumPitch];
    Sums& shared = reinterpret_cast<Sums&>(*stages);
    if (warp < kConsumers / kWarp) {
        const int row = warp % (4 * kRowGroups) * 16 + lane / 4;
        float* mine = &shared[warp / (4 * kRowGroups)][0][row];
#pragma unroll
        for (int j = 0; j < kBatch / 2; ++j) {
            const int sample = j / 4 * 8 + lane % 4 * 2 + j % 2;
            mine[sample * kSumPitch + j / 2 % 2 * 8] = total[j];
        }
    }
    __syncthreads();  // all sums are stored before they are read by rows
    store_by_rows<kThreads, kTileRows>(shared, sums, first_row, outputs, first_sample,
                                       batch);
}

#include "../add_pieces.cuh"
