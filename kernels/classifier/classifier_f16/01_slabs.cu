// Idea: store weights as halves: half the bytes, and no conversion before wgmma.
// From the rung before: this is the first rung: slabs of the ladder classifier_tensor
// with rows of 64 halves (128 bytes) instead of 32 floats. Products read both factors
// from shared memory, and accumulate in registers to the end.
// Requires: sm_90a; a block of kThreads threads; a grid of tiles of outputs, of pieces
// of the inputs and of groups of samples; tensor maps with boxes of kTileRows or kBatch
// lines of kDepth halves, swizzled by 128 bytes; dynamic shared memory for kStages
// stages. With one piece, `sums` is the output.
#include "../../common/hopper/dependent.cuh"
#include "../../common/hopper/tma.cuh"
#include "../../common/hopper/wgmma_narrow.cuh"
#include "../../common/warp.cuh"
#include "../classifier_tensor/slot.cuh"
#include "../store_by_rows.cuh"

WGMMA(wgmma_f16, 32, "k16.f32.f16.f16", ", 0, 0", ", 0")

// Only the bits matter here: halves are copied, and wgmma interprets them.
using Half = unsigned short;

constexpr int kRowGroups = 2;  // of 64 outputs
constexpr int kSlabs = 2;      // of kDepth inputs
constexpr int kTileRows = 64 * kRowGroups;
constexpr int kBatch = 32;
constexpr int kDepth = 64;  // inputs per slab: rows of 128 bytes
constexpr int kStages = 5;
constexpr int kGroupWarps = 4;
constexpr int kConsumers = kGroupWarps * kWarp * kRowGroups * kSlabs;
constexpr int kThreads = kConsumers + kWarp;
constexpr int kSumPitch = kTileRows + 4;

struct alignas(1024) Stage {
    Half weights[kSlabs][kTileRows * kDepth];
    Half input[kSlabs][kBatch * kDepth];
};
static_assert(kSlabs * kBatch * kSumPitch * sizeof(float) <= kStages * sizeof(Stage),
              "the ring has room for the sums");

extern "C" __global__ void __launch_bounds__(kThreads, 1)
    classifier_f16(const __grid_constant__ TensorMap weights,
                   const __grid_constant__ TensorMap input, float* __restrict__ sums,
                   int inputs, int outputs, int batch, int stages_per_block)
{
    extern __shared__ __align__(1024) Stage stages[];
    __shared__ Barrier full[kStages], empty[kStages];
    start_next_launch();
    const int lane = threadIdx.x % kWarp;
    const int warp = __shfl_sync(~0u, threadIdx.x / kWarp, 0);
    const int first_row = blockIdx.x * kTileRows;
    const int first_sample = blockIdx.z * kBatch;
    const int first = blockIdx.y * stages_per_block;
    const int all = (inputs + kSlabs * kDepth - 1) / (kSlabs * kDepth);
    const int last = min(first + stages_per_block, all);
    const int row_group = warp / kGroupWarps % kRowGroups;
    const int slab = warp / (kGroupWarps * kRowGroups);
    if (threadIdx.x == 0) {
        for (int s = 0; s < kStages; ++s) {
            mbarrier_init(&full[s], 1);
            mbarrier_init(&empty[s], kConsumers / kWarp);
        }
        fence_mbarrier_init();
    }
    __syncthreads();
    float sum[kBatch / 2] = {};
    Slot<kStages> at;
    if (warp == kConsumers / kWarp) {
        if (lane == 0) {  // the producer
            for (int i = first; i < last; ++i, at.next()) {
                mbarrier_wait(&empty[at.slot], at.parity ^ 1);
                Stage& stage = stages[at.slot];
                mbarrier_arrive_expect(&full[at.slot], sizeof(Stage));
#pragma unroll
                for (int s = 0; s < kSlabs; ++s) {
                    const int from = (i * kSlabs + s) * kDepth;
                    tma_load(stage.input[s], input, from, first_sample, &full[at.slot]);
                    tma_load(stage.weights[s], weights, from, first_row,
                             &full[at.slot]);
                }
            }
        }
        __syncwarp();
    } else {
        int held = -1;  // a slot that products in flight may read
        for (int i = first; i < last; ++i, at.next()) {
            mbarrier_wait(&full[at.slot], at.parity);
            const Stage& stage = stages[at.slot];
            const Descriptor rows =
                describe_rows_of_k(stage.weights[slab] + row_group * 64 * kDepth);
            const Descriptor samples = describe_rows_of_k(stage.input[slab]);
            wgmma_fence();
#pragma unroll
            for (int s = 0; s < kDepth / 16; ++s) {
                wgmma_f16(sum, rows + 2 * s, samples + 2 * s, true);
            }
            wgmma_commit();
            wgmma_wait<1>();  // the products of the previous stage are done
            __syncwarp();
            if (held >= 0 && lane == 0) mbarrier_arrive(&empty[held]);
            held = at.slot;
        }
        wgmma_wait<0>();
    }
    __syncthreads();  // all reads of the ring are done before sums replace the stages
    using Sums = float[kSlabs][kBatch][kSumPitch];
    Sums& shared = reinterpret_cast<Sums&>(*stages);
    if (warp < kConsumers / kWarp) {
        const int row = row_group * 64 + warp % kGroupWarps * 16 + lane / 4;
#pragma unroll
        for (int j = 0; j < kBatch / 2; ++j) {
            const int sample = j / 4 * 8 + lane % 4 * 2 + j % 2;
            shared[slab][sample][row + j / 2 % 2 * 8] = sum[j];
        }
    }
    __syncthreads();  // all sums are stored before they are read by rows
    store_by_rows<kThreads, kTileRows>(shared, sums, first_row, outputs, first_sample,
                                       batch);
}

#include "../add_pieces.cuh"
