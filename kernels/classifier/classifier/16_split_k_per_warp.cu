// Idea: each warp sums its own slice of the inputs for a whole tile, without barriers.
// From the rung before: a tile of 64 outputs and 32 samples per warp, 8 x 8 sums per
// lane, so that a pack from shared memory serves more products; a pitch without bank
// conflicts.
// Requires: a block of kThreads threads; a grid of tiles of outputs, of pieces of the
// inputs and of groups of samples; weights and input aligned to 16 bytes; kWidth = 4
// where inputs is a multiple of 4, kWidth = 1 otherwise; shared memory for kStages
// steps of each warp or the sums of all warps. With one piece, `sums` is the output.
#include "../../common/async_copy.cuh"
#include "../../common/warp.cuh"
#include "classifier.cuh"
#include "pieces.cuh"

// A lane's rows are kRowLanes apart: neighbouring lanes read neighbouring lines.
constexpr int kLaneRows = 8;
constexpr int kLaneSamples = 8;
constexpr int kRowLanes = 8;
constexpr int kSampleLanes = 4;
constexpr int kTileRows = kLaneRows * kRowLanes;
constexpr int kTileSamples = kLaneSamples * kSampleLanes;
constexpr int kLines = kTileRows + kTileSamples;
constexpr int kStep = 16;  // inputs per step
// With lines 20 floats apart, one float4 from each of eight lines covers all banks.
constexpr int kPitch = kStep + 4;
constexpr int kStages = 3;
constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarp;
// Four samples of eight outputs cover all banks.
constexpr int kSumPitch = kTileRows + 8;
static_assert(kRowLanes * kSampleLanes == kWarp, "a lane for each part of the tile");

template <int kWidth>
__global__ void __launch_bounds__(kThreads, 2)
    classifier_split_k_per_warp(const float* __restrict__ weights,
                                const float* __restrict__ input,
                                float* __restrict__ sums, int inputs, int outputs,
                                int batch, int steps_per_warp)
{
    using P = typename Pack<kWidth>::type;
    constexpr int kPacks = kStep / kWidth;  // per line and step
    // Lines that a warp copies with one instruction.
    constexpr int kLinesAtOnce = kWarp / kPacks;
    static_assert(kTileRows % kLinesAtOnce == 0,
                  "lines copied together are all weights or all inputs");
    // [kWarps][kStages][kLines][kPitch].
    extern __shared__ __align__(16) float shared[];
    const int lane = threadIdx.x % kWarp;
    const int warp = threadIdx.x / kWarp;
    const int row_lane = lane % kRowLanes;
    const int sample_lane = lane / kRowLanes;
    float* mine = shared + warp * (kStages * kLines * kPitch);
    const int packs = inputs / kWidth;
    const int first_row = blockIdx.x * kTileRows;
    const int first_sample = blockIdx.z * kTileSamples;
    const int first_step = (blockIdx.y * kWarps + warp) * steps_per_warp;
    const int steps = min(steps_per_warp, (inputs + kStep - 1) / kStep - first_step);

    const auto fetch = [&](int step) {
        if (step < steps) {
            float* to = mine + step % kStages * (kLines * kPitch);
            const int pack = lane % kPacks;
            const int i = (first_step + step) * kPacks + pack;
            const bool inside = i < packs;
#pragma unroll
            for (int n = 0; n < kLines / kLinesAtOnce; ++n) {
                // Past the end, the last row or sample is copied again; its sum is not
                // stored.
                const int line = n * kLinesAtOnce + lane / kPacks;
                const bool is_row = n * kLinesAtOnce < kTileRows;
                const size_t at = is_row
                                      ? min(first_row + line, outputs - 1)
                                      : min(first_sample + line - kTileRows, batch - 1);
                const P* from =
                    reinterpret_cast<const P*>(is_row ? weights : input) + at * packs;
                copy_async<kWidth>(
                    reinterpret_cast<float*>(reinterpret_cast<P*>(to + line * kPitch) +
                                             pack),
                    reinterpret_cast<const float*>(from + (inside ? i : 0)), inside);
            }
        }
        close_group();
    };

#pragma unroll
    for (int step = 0; step < kStages - 1; ++step) {
        fetch(step);
    }
    float sum[kLaneRows][kLaneSamples] = {};
// A step is 1024 multiply-adds: unrolled steps would not fit the instruction cache.
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
        wait_for_groups<kStages - 2>();
        // This step has arrived, and all reads of the stage filled next are done.
        __syncwarp();
        fetch(step + kStages - 1);
        const float* from = mine + step % kStages * (kLines * kPitch);
#pragma unroll
        for (int i = 0; i < kStep; i += 4) {
            float4 weight[kLaneRows];
#pragma unroll
            for (int r = 0; r < kLaneRows; ++r) {
                weight[r] = *reinterpret_cast<const float4*>(
                    from + (row_lane + r * kRowLanes) * kPitch + i);
            }
#pragma unroll
            for (int s = 0; s < kLaneSamples; ++s) {
                const int line = kTileRows + sample_lane + s * kSampleLanes;
                const float4 value =
                    *reinterpret_cast<const float4*>(from + line * kPitch + i);
#pragma unroll
                for (int r = 0; r < kLaneRows; ++r) {
                    sum[r][s] = multiply_add(weight[r], value, sum[r][s]);
                }
            }
        }
    }

    __syncthreads();  // all reads of the stages are done before sums replace them
#pragma unroll
    for (int r = 0; r < kLaneRows; ++r) {
#pragma unroll
        for (int s = 0; s < kLaneSamples; ++s) {
            const int sample = sample_lane + s * kSampleLanes;
            shared[(warp * kTileSamples + sample) * kSumPitch + row_lane +
                   r * kRowLanes] = sum[r][s];
        }
    }
    __syncthreads();  // all warps have stored their sums before any are added
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
