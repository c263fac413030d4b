// Idea: Winograd's F(2 x 2, 3 x 3): four outputs from 16 products.
// From the rung before: 16 products instead of 36: the columns are transformed as well;
// a transformed window serves all output maps of its block.
// Requires: blocks of 32 * kWarps threads; shared memory for two stages and weights, or
// for all sums; kWidth = 4 only if 4 divides c_in and weights are aligned to 16 bytes;
// kPairs only if n is even and output is aligned to 8 bytes.
#include "../../common/async_copy.cuh"
#include "../../common/warp.cuh"
#include "add_parts.cuh"
#include "windows.cuh"

// kSpread: interleave the transforms for the next stage with the products of this one;
// otherwise they come before the products.
template <int kOuts, int kTiles, int kQuadsOut, int kQuadsTile, int kWarps, int kBlocks,
          bool kSpread, int kWidth, bool kPairs>
__global__ void __launch_bounds__(kWarp* kWarps, kBlocks)
    convlayer_winograd_2d(const float* __restrict__ input,
                          const float* __restrict__ weights, float* __restrict__ output,
                          int n, int c_in, int c_out, int maps_of_part)
{
    using S = Shape<kOuts, kTiles, kQuadsOut, kQuadsTile, kWarps>;
    extern __shared__ float4 memory[];
    float* const stages_at = reinterpret_cast<float*>(memory);  // two stages
    // Untransformed weights of two stages.
    float* const raw_at = stages_at + 2 * S::kStage;

    const int thread = threadIdx.x, warp = thread / kWarp, lane = thread % kWarp;
    const int across = (n + kTile - 1) / kTile, tiles = across * across;
    const int first_tile = blockIdx.x * kTiles, first_out = blockIdx.y * kOuts,
              first_map = blockIdx.z * maps_of_part;
    const int maps = min(maps_of_part, c_in - first_map),
              stages = (maps + kDepth - 1) / kDepth;
    const size_t plane = static_cast<size_t>(n) * n;

    // The windows of this thread belong to one tile. on_map has a bit for each of its
    // 4 x 4 inputs, set if the input is on the map.
    const int lane_of_tile = thread % kTiles, map = thread / kTiles,
              tile = first_tile + lane_of_tile;
    const int row = tile / across * kTile, col = tile % across * kTile;
    const bool loads = S::kLoaders == S::kThreads || thread < S::kLoaders;
    unsigned on_map = 0;
#pragma unroll
    for (int i = 0; i < kProducts; ++i) {
        const int r = row + i / kSide - 1, c = col + i % kSide - 1;
        on_map |= static_cast<unsigned>(loads && tile < tiles && r >= 0 && r < n &&
                                        c >= 0 && c < n)
                  << i;
    }
    const int corner = (row - 1) * n + col - 1;
    float window[S::kWindows][kProducts];
    const float* inputs = input + (first_map + map) * plane;
    auto load_windows = [&](int stage) {
#pragma unroll
        for (int w = 0; w < S::kWindows; ++w) {
            const unsigned wanted =
                stage * kDepth + map + w * S::kMapStride < maps ? on_map : 0;
            const float* const from = inputs + w * S::kMapStride * plane;
#pragma unroll
            for (int i = 0; i < kProducts; ++i) {
                window[w][i] =
                    wanted >> i & 1 ? from[corner + i / kSide * n + i % kSide] : 0.0f;
            }
        }
        inputs += kDepth * plane;
    };
    auto store_windows = [&](int stage) {
        float* const to = stages_at + stage % 2 * S::kStage + S::kWeights +
                          map * kTiles + lane_of_tile;
#pragma unroll
        for (int w = 0; w < S::kWindows; ++w) {
            if (loads) store_window<S>(to + w * S::kMapStride * kTiles, window[w]);
        }
    };

    // A stage's weights of an output map are contiguous: kUnits threads copy them, for
    // kCopied output maps at once.
    constexpr int kUnits = S::kRow / kWidth, kCopied = S::kThreads / kUnits;
    const int unit = thread % kUnits, copied = thread / kUnits;
    const int outs_left = copied < kCopied ? min(kOuts, c_out - first_out) - copied : 0;
    const size_t depth = static_cast<size_t>(c_in) * kTaps;
    const float* taps = weights + (outs_left > 0 ? first_out + copied : 0) * depth +
                        first_map * kTaps + unit * kWidth;
    int taps_left = maps * kTaps - unit * kWidth;
    auto copy_weights = [&](int stage) {
        float* const to =
            raw_at + stage % 2 * S::kRaw + copied * S::kRow + unit * kWidth;
        const float* from = taps;
#pragma unroll
        for (int out = 0; out < kOuts; out += kCopied) {
            const bool inside = taps_left > 0 && out < outs_left;
            if (copied < kCopied && (out + kCopied <= kOuts || out + copied < kOuts)) {
                copy_async<kWidth>(to + out * S::kRow, inside ? from : weights, inside);
            }
            from += kCopied * depth;
        }
        taps += S::kRow;
        taps_left -= S::kRow;
    };
    float g[kTaps];
    auto read_taps = [&](int stage, int set) {
        const float* const from =
            raw_at + stage % 2 * S::kRaw + (thread + set * S::kThreads) * kTaps;
#pragma unroll
        for (int i = 0; i < kTaps; ++i) {
            g[i] = from[i];
        }
    };
    auto store_taps = [&](int stage, int set) {
        const int out = thread / kDepth + set * (S::kThreads / kDepth);
        store_factors<S>(
            stages_at + stage % 2 * S::kStage + thread % kDepth * S::kPitch + out, g);
    };
    auto transform = [&](int stage) {
        store_windows(stage);
#pragma unroll
        for (int set = 0; set < S::kSets; ++set) {
            read_taps(stage, set);
            store_taps(stage, set);
        }
    };

    // Lanes 2i and 2i + 1 read the same tiles, lanes i and i + 2 the same maps: one
    // wavefront serves more lanes.
    const int lane_tile = lane / 2 % S::kLanesTile,
              lane_out = lane % 2 + lane / (2 * S::kLanesTile) * 2;
    float sum[S::kOwn][4 * kQuadsOut][4 * kQuadsTile] = {};
    auto multiply = [&](int stage, int m) {
        const float* const here = stages_at + stage % 2 * S::kStage;
#pragma unroll
        for (int p = 0; p < S::kOwn; ++p) {
            const int line = (warp * S::kOwn + p) * kDepth + m;
            float factor[4 * kQuadsOut], value[4 * kQuadsTile];
            read_quads<kQuadsOut, 4 * S::kLanesOut>(
                factor, here + line * S::kPitch + lane_out * 4);
            read_quads<kQuadsTile, 4 * S::kLanesTile>(
                value, here + S::kWeights + line * kTiles + lane_tile * 4);
#pragma unroll
            for (int o = 0; o < 4 * kQuadsOut; ++o) {
#pragma unroll
                for (int t = 0; t < 4 * kQuadsTile; ++t) {
                    sum[p][o][t] += factor[o] * value[t];
                }
            }
        }
    };

    if (stages > 0) {
        copy_weights(0);
        load_windows(0);
        wait_for_copies();
        // The first stage's weights are complete before any thread reads them.
        __syncthreads();
        copy_weights(1);
        transform(0);
        load_windows(1);
        wait_for_copies();
        // Stage 0 and the weights of stage 1 are complete before any are read.
        __syncthreads();
    }
#pragma unroll 1
    for (int stage = 0; stage < stages - 1; ++stage) {
        if constexpr (!kSpread) {
            copy_weights(stage + 2);
            transform(stage + 1);
            load_windows(stage + 2);
        }
#pragma unroll
        for (int m = 0; m < kDepth; ++m) {
            multiply(stage, m);
            if constexpr (kSpread) {
                if (m == 0) copy_weights(stage + 2);
                if (m == 1) {
                    store_windows(stage + 1);
                    load_windows(stage + 2);
                }
                if (m % 2 == 1 && m / 2 > 0 && m / 2 <= S::kSets)
                    store_taps(stage + 1, m / 2 - 1);
                if (m % 2 == 1 && m / 2 < S::kSets) read_taps(stage + 1, m / 2);
            }
        }
        wait_for_copies();
        __syncthreads();  // the next stage is complete; all reads of this one are done
    }
    if (stages > 0) {
#pragma unroll
        for (int m = 0; m < kDepth; ++m) {
            multiply(stages - 1, m);
        }
        // All reads of the last stage are done before sums overwrite it.
        __syncthreads();
    }

    float* const sums = stages_at;
#pragma unroll
    for (int p = 0; p < S::kOwn; ++p) {
#pragma unroll
        for (int o = 0; o < 4 * kQuadsOut; ++o) {
#pragma unroll
            for (int q = 0; q < kQuadsTile; ++q) {
                const int out = (o / 4 * S::kLanesOut + lane_out) * 4 + o % 4,
                          at = (q * S::kLanesTile + lane_tile) * 4;
                *reinterpret_cast<float4*>(
                    sums + ((warp * S::kOwn + p) * kOuts + out) * S::kSumPitch + at) =
                    *reinterpret_cast<const float4*>(&sum[p][o][4 * q]);
            }
        }
    }
    __syncthreads();  // all sums are stored before any thread reads them
#pragma unroll 2
    for (int out = map; out < kOuts; out += S::kThreads / kTiles) {
        float outputs[kTile][kTile];
        read_tile<S>(outputs, sums + out * S::kSumPitch + lane_of_tile);
        if (tile >= tiles || first_out + out >= c_out) continue;
        float* to =
            output +
            ((static_cast<size_t>(blockIdx.z) * c_out + first_out + out) * n + row) *
                n +
            col;
#pragma unroll
        for (int r = 0; r < kTile; ++r, to += n) {
            if constexpr (kPairs) {
                *reinterpret_cast<float2*>(to) = {outputs[r][0], outputs[r][1]};
            } else if (row + r < n) {
                to[0] = outputs[r][0];
                if (col + 1 < n) to[1] = outputs[r][1];
            }
        }
    }
}
