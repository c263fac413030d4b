// Idea: the copy engine fills a ring, from which four warpgroups multiply.
// From the rung before: 256 outputs a block, so that 16 blocks read the input, not 64;
// a warp starts the copies, two split the input, and four warpgroups make wgmma
// products of the weights' high and low parts with the input's high and low parts,
// which lie side by side.
// Requires: sm_90a; a block of kThreads threads; a grid of tiles of outputs, of pieces
// of the inputs and of groups of samples; tensor maps with boxes of kRows or kBatch
// lines of kDepth floats, swizzled by 128 bytes; dynamic shared memory for kStages
// stages. With one piece sums is the output.
#include "../../common/hopper/tma.cuh"
#include "../../common/hopper/wgmma.cuh"
#include "../../common/mma.cuh"
#include "../../common/warp.cuh"
#include "../classifier/pieces.cuh"
#include "slot.cuh"
#include "split.cuh"

constexpr int kGroups = 4;  // warpgroups that multiply, 64 outputs each
constexpr int kRows = 64 * kGroups;
constexpr int kBatch = 32;
constexpr int kDepth = 32;  // inputs of a stage: rows of 128 bytes
constexpr int kStages = 4;
constexpr int kConsumers = 128 * kGroups;
constexpr int kThreads = kConsumers + 128;
constexpr int kSplitters = 2;  // warps
constexpr int kChain = 2;      // stages that are summed in tensor cores
constexpr int kSumPitch = kRows + 4;

struct alignas(1024) Stage {
    float weights[kRows * kDepth];
    float input[2][kBatch * kDepth];  // as it is, and its low parts
};
static_assert(kBatch * kSumPitch * sizeof(float) <= kStages * sizeof(Stage),
              "the ring has room for the sums");

extern "C" __global__ void __launch_bounds__(kThreads, 1)
    classifier_wgmma(const __grid_constant__ TensorMap weights,
                     const __grid_constant__ TensorMap input, float* __restrict__ sums,
                     int inputs, int outputs, int batch, int stages_per_block)
{
    extern __shared__ __align__(1024) Stage stages[];
    // Filled by the copy engine; filled and split; read.
    __shared__ Barrier arrived[kStages], full[kStages], empty[kStages];
    const int lane = threadIdx.x % kWarp;
    const int warp = __shfl_sync(~0u, threadIdx.x / kWarp, 0);
    const int first_row = blockIdx.x * kRows;
    const int first_sample = blockIdx.z * kBatch;
    const int first = blockIdx.y * stages_per_block;
    const int last = min(first + stages_per_block, (inputs + kDepth - 1) / kDepth);
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
                mbarrier_arrive_expect(&arrived[at.slot], sizeof(stage.input[0]));
                mbarrier_arrive_expect(&full[at.slot], sizeof(stage.weights));
                tma_load(stage.input[0], input, i * kDepth, first_sample,
                         &arrived[at.slot]);
                tma_load(stage.weights, weights, i * kDepth, first_row, &full[at.slot]);
            }
        } else if (role >= 1 && role <= kSplitters) {  // splits the input
            constexpr int kQuads = kBatch * kDepth / 4 / kSplitters / kWarp;
            for (int i = first; i < last; ++i, at.next()) {
                mbarrier_wait(&arrived[at.slot], at.parity);
                float4(*parts)[kBatch * kDepth / 4] =
                    reinterpret_cast<float4(*)[kBatch * kDepth / 4]>(
                        stages[at.slot].input);
                float4 value[kQuads];
#pragma unroll
                for (int j = 0; j < kQuads; ++j) {
                    value[j] = parts[0][((role - 1) * kQuads + j) * kWarp + lane];
                }
#pragma unroll
                for (int j = 0; j < kQuads; ++j) {
                    parts[1][((role - 1) * kQuads + j) * kWarp + lane] =
                        make_float4(low_part(value[j].x), low_part(value[j].y),
                                    low_part(value[j].z), low_part(value[j].w));
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
        const int row = warp * 16 + lane % 16;
        const int quad = lane / 16;
        Slot<kStages> at;
        float part[kBatch];  // of the input's high parts, then of its low parts
        for (int i = first; i < last; ++i, at.next()) {
            mbarrier_wait(&full[at.slot], at.parity);
            const Stage& stage = stages[at.slot];
            const float* line = stage.weights + row * kDepth;
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
            const Descriptor both = describe_rows_of_k(stage.input);
            wgmma_fence();
#pragma unroll
            for (int s = 0; s < kDepth / 8; ++s) {
                wgmma_tf32(part, low[s], both + 2 * s, (i - first) % kChain + s > 0);
                wgmma_tf32(part, high[s], both + 2 * s, true);
            }
            wgmma_commit();
            wgmma_wait<0>();
            __syncwarp();
            if (lane == 0) mbarrier_arrive(&empty[at.slot]);
            if ((i - first) % kChain == kChain - 1 || i == last - 1) {
#pragma unroll
                for (int j = 0; j < kBatch / 2; ++j) {
                    total[j] += part[j] + part[j + kBatch / 2];
                }
            }
        }
    }
    __syncthreads();  // all reads of the ring are done before sums replace the stages
    float* shared = reinterpret_cast<float*>(stages);
    if (warp < kConsumers / kWarp) {
        float* mine = shared + warp * 16 + lane / 4;
#pragma unroll
        for (int j = 0; j < kBatch / 2; ++j) {
            const int sample = j / 4 * 8 + lane % 4 * 2 + j % 2;
            mine[sample * kSumPitch + j / 2 % 2 * 8] = total[j];
        }
    }
    __syncthreads();  // all sums are stored before they are read by rows
    for (int n = threadIdx.x; n < kRows * kBatch; n += kThreads) {
        const int r = n % kRows;
        const int s = n / kRows;
        if (first_row + r < outputs && first_sample + s < batch) {
            sums[(static_cast<size_t>(blockIdx.y) * batch + first_sample + s) *
                     outputs +
                 first_row + r] = shared[s * kSumPitch + r];
        }
    }
}
