// Idea: products with low parts are corrections; bfloat16 has enough bits for them.
// From the rung before: two of three products are of bfloat16, at twice the rate of
// TF32 and rounded, not cut off; tensor cores read two thirds of the bytes.
// Requires: sm_90a; a block of kThreads threads; a grid of tiles of outputs, of pieces
// of the inputs and of groups of samples; tensor maps with boxes of kTileRows or kBatch
// lines of kDepth floats, swizzled by 128 bytes; dynamic shared memory for kStages
// stages. With one piece sums is the output. Numbers from 2^128 - 2^119 on round to
// infinity in bfloat16, and give NaN as infinite ones do.
#include "../../common/hopper/dependent.cuh"
#include "../../common/warp.cuh"
#include "../store_by_rows.cuh"
#include "corrections.cuh"
#include "slot.cuh"

constexpr int kRowGroups = 2;  // of 64 outputs
constexpr int kSlabs = 2;      // of kDepth inputs; a warpgroup for both
constexpr int kTileRows = 64 * kRowGroups;
constexpr int kStages = 4;
constexpr int kConsumers = 128 * kRowGroups * kSlabs;
constexpr int kSplitters = 2;  // warps, one for a slab
constexpr int kThreads = kConsumers + 128;
constexpr int kChain = 2;  // stages whose high parts are summed in tensor cores
constexpr int kSumPitch = kTileRows + 4;

struct alignas(1024) Stage {
    float weights[kSlabs][kTileRows * kDepth];
    Samples input[kSlabs];
};
static_assert(kSlabs * kBatch * kSumPitch * sizeof(float) <= kStages * sizeof(Stage),
              "the ring has room for the sums");
static_assert(kSplitters == kSlabs && kBatch == kWarp, "a lane splits a sample");

extern "C" __global__ void __launch_bounds__(kThreads, 1)
    classifier_corrected(const __grid_constant__ TensorMap weights,
                         const __grid_constant__ TensorMap input,
                         float* __restrict__ sums, int inputs, int outputs, int batch,
                         int stages_per_block)
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
    const auto copy = [&](int i, int slot) {
        Stage& stage = stages[slot];
        mbarrier_arrive_expect(&arrived[slot], kSlabs * sizeof(Samples::whole));
        mbarrier_arrive_expect(&full[slot], sizeof(stage.weights));
#pragma unroll
        for (int s = 0; s < kSlabs; ++s) {
            const int from = (i * kSlabs + s) * kDepth;
            tma_load(stage.input[s].whole, input, from, first_sample, &arrived[slot]);
            tma_load(stage.weights[s], weights, from, first_row, &full[slot]);
        }
    };
    if (threadIdx.x == kConsumers) {
        tma_prefetch(weights);
        tma_prefetch(input);
        for (int s = 0; s < kStages; ++s) {
            mbarrier_init(&arrived[s], 1);
            mbarrier_init(&full[s], 1 + kSplitters);
            mbarrier_init(&empty[s], kConsumers / kWarp);
        }
        fence_mbarrier_init();
#pragma unroll 1
        for (int s = 0; s < min(last - first, kStages); ++s) copy(first + s, s);
    }
    __syncthreads();
    float total[kBatch / 2] = {};
    if (warp >= kConsumers / kWarp) {
        release_registers<40>();
        const int role = warp - kConsumers / kWarp;
        Slot<kStages> at;
        if (role == 0 && lane == 0) {  // copies
            for (int i = first + kStages; i < last; ++i, at.next()) {
                mbarrier_wait(&empty[at.slot], at.parity);
                copy(i, at.slot);
            }
        } else if (role >= 1 && role <= kSplitters) {  // splits the input
            for (int i = first; i < last; ++i, at.next()) {
                mbarrier_wait(&arrived[at.slot], at.parity);
#pragma unroll 2
                for (int eight = 0; eight < kDepth / 8; ++eight) {
                    split_eight(stages[at.slot].input[role - 1], lane, eight);
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
        Slot<kStages> at;
        Sums part;
        for (int i = first; i < last; ++i, at.next()) {
            mbarrier_wait(&full[at.slot], at.parity);
            const Stage& stage = stages[at.slot];
            multiply_slab(part, stage.weights[slab], row, lane / 16, stage.input[slab],
                          (i - first) % kChain > 0, i > first);
            __syncwarp();
            if (lane == 0) mbarrier_arrive(&empty[at.slot]);
            if ((i - first) % kChain == kChain - 1 || i == last - 1) {
#pragma unroll
                for (int j = 0; j < kBatch / 2; ++j) {
                    total[j] += part.high[j];
                }
            }
        }
        if (first < last) {
#pragma unroll
            for (int j = 0; j < kBatch / 2; ++j) total[j] += part.corrections[j];
        }
    }
    __syncthreads();  // all reads of the ring are done before sums replace the stages
    using Tile = float[kSlabs][kBatch][kSumPitch];
    Tile& shared = reinterpret_cast<Tile&>(*stages);
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
