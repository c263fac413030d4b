// Idea: three TF32 products of high and low parts for each float32 product.
// From the rung before: nothing, this is the first rung: split_k_per_warp of the ladder
// classifier, whose lanes hold fragments for tensor cores instead of 8 x 8 sums, and
// split each float that they load.
// Requires: sm_80; a block of kThreads threads; a grid of tiles of outputs, of pieces
// of the inputs and of groups of samples; weights and input aligned to 16 bytes;
// kWidth = 4 where inputs is a multiple of 4, kWidth = 1 otherwise; shared memory for
// kStages steps of each warp, or for the sums of all warps. With one piece sums is the
// output. kParts is 2 for three products, 1 for plain TF32.
#include "../../common/mma.cuh"
#include "../../common/warp.cuh"
#include "../classifier/pieces.cuh"
#include "split.cuh"

constexpr int kTileRows = 64;
constexpr int kTileSamples = 32;
constexpr int kLines = kTileRows + kTileSamples;
constexpr int kStep = 16;  // inputs of a step
// The floats of a fragment, 8 lines of 20 floats and 4 of each, fill all banks.
constexpr int kPitch = kStep + 4;
constexpr int kStages = 3;
constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarp;
// Eight outputs of two samples, 4 lanes apart, fill all banks.
constexpr int kSumPitch = kTileRows + 4;
constexpr int kRowTiles = kTileRows / 16;
constexpr int kSampleTiles = kTileSamples / 8;

struct Split {
    unsigned high, low;
};
__device__ __forceinline__ Split split(float value)
{
    return {__float_as_uint(value), __float_as_uint(low_part(value))};
}

template <int kParts, int kWidth>
__global__ void __launch_bounds__(kThreads, 2)
    classifier_mma(const float* __restrict__ weights, const float* __restrict__ input,
                   float* __restrict__ sums, int inputs, int outputs, int batch,
                   int steps_per_warp)
{
    constexpr int kPacks = kStep / kWidth;  // of a line, in a step
    // That a warp copies with one instruction.
    constexpr int kLinesAtOnce = kWarp / kPacks;
    // [kWarps][kStages][kLines][kPitch].
    extern __shared__ __align__(16) float shared[];
    const int lane = threadIdx.x % kWarp;
    const int warp = threadIdx.x / kWarp;
    const int group = lane / 4;
    const int member = lane % 4;
    float* mine = shared + warp * (kStages * kLines * kPitch);
    const int first_row = blockIdx.x * kTileRows;
    const int first_sample = blockIdx.z * kTileSamples;
    const int first_step = (blockIdx.y * kWarps + warp) * steps_per_warp;
    const int all_steps = (inputs + kStep - 1) / kStep;
    const int steps = min(steps_per_warp, all_steps - first_step);

    const auto fetch = [&](int step) {
        if (step < steps) {
            float* to = mine + step % kStages * (kLines * kPitch);
            const int pack = lane % kPacks;
            const int i = (first_step + step) * kStep + pack * kWidth;
            const bool inside = i < inputs;
#pragma unroll
            for (int n = 0; n < kLines / kLinesAtOnce; ++n) {
                // Past the last row or sample the last one is copied again, and its sum
                // is not stored.
                const int line = n * kLinesAtOnce + lane / kPacks;
                const bool is_row = n * kLinesAtOnce < kTileRows;
                const size_t at = is_row
                                      ? min(first_row + line, outputs - 1)
                                      : min(first_sample + line - kTileRows, batch - 1);
                const float* line_from = (is_row ? weights : input) + at * inputs;
                copy_async<kWidth>(to + line * kPitch + pack * kWidth,
                                   line_from + (inside ? i : 0), inside);
            }
        }
        close_group();
    };

#pragma unroll
    for (int step = 0; step < kStages - 1; ++step) {
        fetch(step);
    }
    float sum[kRowTiles][kSampleTiles][4] = {};
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
        wait_for_groups<kStages - 2>();
        // This step has arrived; all reads of the stage filled next are done.
        __syncwarp();
        fetch(step + kStages - 1);
        const float* from =
            mine + step % kStages * (kLines * kPitch) + group * kPitch + member;
        // Tensor cores truncate their sums; few of them are added up there.
        float part[kRowTiles][kSampleTiles][4] = {};
#pragma unroll
        for (int i = 0; i < kStep; i += 8) {
            Split value[kSampleTiles][2];
#pragma unroll
            for (int s = 0; s < kSampleTiles; ++s) {
                const float* line = from + (kTileRows + s * 8) * kPitch + i;
                value[s][0] = split(line[0]);
                value[s][1] = split(line[4]);
            }
#pragma unroll
            for (int r = 0; r < kRowTiles; ++r) {
                unsigned high[4], low[4];
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    const int row = r * 16 + j % 2 * 8;
                    const Split weight = split(from[row * kPitch + i + j / 2 * 4]);
                    high[j] = weight.high;
                    low[j] = weight.low;
                }
#pragma unroll
                for (int s = 0; s < kSampleTiles; ++s) {
                    const Split(&b)[2] = value[s];
                    if constexpr (kParts == 2) {
                        mma_tf32(part[r][s], low, b[0].high, b[1].high);
                        mma_tf32(part[r][s], high, b[0].low, b[1].low);
                    }
                    mma_tf32(part[r][s], high, b[0].high, b[1].high);
                }
            }
        }
#pragma unroll
        for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
            for (int s = 0; s < kSampleTiles; ++s) {
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    sum[r][s][j] += part[r][s][j];
                }
            }
        }
    }

    __syncthreads();  // all reads of the stages are done before sums replace them
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
        for (int s = 0; s < kSampleTiles; ++s) {
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const int sample = s * 8 + member * 2 + j % 2;
                const int row = r * 16 + group + j / 2 * 8;
                shared[(warp * kTileSamples + sample) * kSumPitch + row] = sum[r][s][j];
            }
        }
    }
    __syncthreads();  // all warps have stored their sums before they are added up
    for (int n = threadIdx.x; n < kTileRows * kTileSamples; n += kThreads) {
        const int r = n % kTileRows;
        const int s = n / kTileRows;
        float total = 0.0f;
#pragma unroll
        for (int w = 0; w < kWarps; ++w) {
            total += shared[(w * kTileSamples + s) * kSumPitch + r];
        }
        if (first_row + r < outputs && first_sample + s < batch) {
            sums[(static_cast<size_t>(blockIdx.y) * batch + first_sample + s) *
                     outputs +
                 first_row + r] = total;
        }
    }
}
