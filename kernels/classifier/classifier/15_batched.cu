// Idea: tile weights and 32 samples in shared memory, with many sums per lane.
// From the rung before: each weight is loaded once for all samples; copies run
// kStages - 1 steps ahead.
// Requires: a block of kThreads threads; a grid of tiles of outputs, of pieces of the
// inputs and of groups of samples; weights and input aligned to 16 bytes; kWidth = 4
// where inputs is a multiple of 4, kWidth = 1 otherwise; kStages stages of shared
// memory. With one piece, `sums` is the output.
#include "../../common/async_copy.cuh"
#include "../../common/warp.cuh"
#include "classifier.cuh"
#include "pieces.cuh"

constexpr int kWarpRows = 8;
constexpr int kWarpSamples = 16;
constexpr int kRowWarps = 4;
constexpr int kSampleWarps = 2;
constexpr int kStages = 5;
constexpr int kThreads = 256;
constexpr int kTileRows = kWarpRows * kRowWarps;
constexpr int kTileSamples = kWarpSamples * kSampleWarps;
constexpr int kLines = kTileRows + kTileSamples;
static_assert(kThreads == kRowWarps * kSampleWarps * kWarp,
              "a warp for each part of the tile");

template <int kWidth>
__global__ void __launch_bounds__(kThreads)
    classifier_batched(const float* __restrict__ weights,
                       const float* __restrict__ input, float* __restrict__ sums,
                       int inputs, int outputs, int batch, int steps_per_piece)
{
    using P = typename Pack<kWidth>::type;
    extern __shared__ __align__(16) unsigned char shared[];
    // [kStages][kLines][kWarp]: a step is one pack per lane of each line.
    P* lines = reinterpret_cast<P*>(shared);
    const int lane = threadIdx.x % kWarp;
    const int warp = threadIdx.x / kWarp;
    const int packs = inputs / kWidth;
    const int first_row = blockIdx.x * kTileRows;
    const int first_sample = blockIdx.z * kTileSamples;
    const int first_pack = blockIdx.y * steps_per_piece * kWarp + lane;
    const int steps =
        min(steps_per_piece, (packs - (first_pack - lane) + kWarp - 1) / kWarp);

    const auto fetch = [&](int step) {
        if (step < steps) {
            P* to = lines + step % kStages * kLines * kWarp + lane;
            const int i = first_pack + step * kWarp;
            const bool inside = i < packs;
#pragma unroll
            for (int line = warp; line < kLines; line += kThreads / kWarp) {
                // Past the end, the last row or sample is copied again; its sum is not
                // stored.
                const bool is_row = line < kTileRows;
                const size_t at = is_row
                                      ? min(first_row + line, outputs - 1)
                                      : min(first_sample + line - kTileRows, batch - 1);
                const P* from =
                    reinterpret_cast<const P*>(is_row ? weights : input) + at * packs;
                copy_async<kWidth>(
                    reinterpret_cast<float*>(to + line * kWarp),
                    reinterpret_cast<const float*>(from + (inside ? i : 0)), inside);
            }
        }
        close_group();
    };

    for (int step = 0; step < kStages - 1; ++step) {
        fetch(step);
    }
    const int row_line = warp / kSampleWarps * kWarpRows;
    const int sample_line = warp % kSampleWarps * kWarpSamples;
    float sum[kWarpRows][kWarpSamples] = {};
    for (int step = 0; step < steps; ++step) {
        wait_for_groups<kStages - 2>();
        // This step has arrived, and all reads of the stage filled next are done.
        __syncthreads();
        fetch(step + kStages - 1);
        const P* from = lines + step % kStages * kLines * kWarp + lane;
        P weight[kWarpRows];
#pragma unroll
        for (int r = 0; r < kWarpRows; ++r) {
            weight[r] = from[(row_line + r) * kWarp];
        }
#pragma unroll
        for (int s = 0; s < kWarpSamples; ++s) {
            const P value = from[(kTileRows + sample_line + s) * kWarp];
#pragma unroll
            for (int r = 0; r < kWarpRows; ++r) {
                sum[r][s] = multiply_add(weight[r], value, sum[r][s]);
            }
        }
    }
#pragma unroll
    for (int s = 0; s < kWarpSamples; ++s) {
#pragma unroll
        for (int r = 0; r < kWarpRows; ++r) {
            const float total = warp_sum(sum[r][s]);
            const int row = first_row + row_line + r;
            const int sample = first_sample + sample_line + s;
            if (lane == 0 && row < outputs && sample < batch) {
                sums[(static_cast<size_t>(blockIdx.y) * batch + sample) * outputs +
                     row] = total;
            }
        }
    }
}
