// Idea: copy the filters with cp.async: copies in flight hold no registers.
// From the rung before: cp.async instead of loads and stores; kBlocks blocks per SM, so
// that the whole grid is resident at once.
// Requires: as the rung before; shared memory for all chunks that a block loads at
// once.
#include "../shape.cuh"
#include "async_filters.cuh"
#include "fold.cuh"

// kRowWidth: floats per load of the rows, 4 where a block has whole rows of a multiple
// of 16 bytes. kFilterWidth: floats per copy of the filters, 4 where channels * kTaps
// is a multiple of 4. kStrided: a lane's channels are 32 apart, so that neighbouring
// lanes load neighbouring rows; otherwise they are adjacent, and their filters take
// fewer loads from shared memory. The input is not __restrict__: otherwise the compiler
// might move its loads past the wait for the filters.
template <int kLength, int kTaps, int kRowWidth, int kFilterWidth, int kTeams,
          int kWarps, int kOutputs, int kGroups, int kChannels, int kBlocks,
          bool kStrided>
__global__ void __launch_bounds__(kTeams * kWarps * kWarp, kBlocks)
    conv1d_cp_async(const float* input, const float* __restrict__ weight,
                    const float* __restrict__ bias, float* __restrict__ output,
                    int channels)
{
    constexpr int kTile = tile_of(kLength), kPadding = kTaps / 2,
                  kWindow = kTile + 2 * kPadding;
    constexpr int kChunk = kWarp * kChannels;  // channels per warp at a time
    constexpr int kSums = kOutputs * kTile, kFold = fold_of(kSums),
                  kFolds = (kSums + kFold - 1) / kFold;
    static_assert(kTaps % 2 == 1, "an even number of taps has no middle");
    static_assert(kSums <= kWarps * kWarp, "each thread loads at most one bias");
    // kGroups x kOutputs chunks per warp.
    extern __shared__ __align__(sizeof(float4)) float staged[];
    __shared__ float partial[kTeams][kWarps][kFolds * kFold];

    const int team = threadIdx.x / (kWarps * kWarp);
    const int mine = threadIdx.x % (kWarps * kWarp);  // index within the team
    const int out = (blockIdx.x * kTeams + team) * kOutputs;
    const int first = kLength > kTile ? blockIdx.y * kTile : 0;
    const int lane = mine % kWarp;
    const int warp = mine / kWarp;
    float* filters_of_warp =
        staged + threadIdx.x / kWarp * (kGroups * kOutputs * kChunk * kTaps);
    const float offset_of_mine = mine < kSums ? bias[out + mine / kTile] : 0.0f;
    float sum[kFolds * kFold] = {};
    for (int base = warp * kChunk; base < channels; base += kGroups * kWarps * kChunk) {
        __syncwarp();  // all lanes have read the previous chunks' filters
        // All loads and copies come first, so that all are in flight at once; rows
        // before filters, because the compiler would move later loads of rows past the
        // wait.
        float window[kGroups][kChannels][kWindow] = {};
#pragma unroll
        for (int g = 0; g < kGroups; ++g) {
            const int chunk = base + g * kWarps * kChunk;
            const int channel = chunk + (kStrided ? lane : lane * kChannels);
#pragma unroll
            for (int c = 0; c < kChannels; ++c) {
                const int row = channel + c * (kStrided ? kWarp : 1);
                const float* from = input + static_cast<size_t>(row) * kLength;
                if constexpr (kRowWidth == 4) {
#pragma unroll
                    for (int i = 0; i < kLength / 4; ++i) {
                        const Pack<4> four =
                            row < channels ? reinterpret_cast<const Pack<4>*>(from)[i]
                                           : Pack<4>{};
#pragma unroll
                        for (int e = 0; e < 4; ++e) {
                            window[g][c][kPadding + 4 * i + e] = four.at[e];
                        }
                    }
                } else {
#pragma unroll
                    for (int j = 0; j < kWindow; ++j) {
                        const int at = first + j - kPadding;
                        if (row < channels && at >= 0 && at < kLength) {
                            window[g][c][j] = from[at];
                        }
                    }
                }
            }
        }
#pragma unroll
        for (int g = 0; g < kGroups; ++g) {
            const int chunk = base + g * kWarps * kChunk;
            const int floats = min(kChunk, channels - chunk) * kTaps;
#pragma unroll
            for (int r = 0; r < kOutputs; ++r) {
                const float* filters =
                    weight + (static_cast<size_t>(out + r) * channels + chunk) * kTaps;
                float* to = filters_of_warp + (g * kOutputs + r) * kChunk * kTaps;
                copy_chunk<kChunk * kTaps, kFilterWidth>(to, filters, floats);
            }
            close_group();
        }

        for_each_group<kGroups, 0>([&](auto group) {
            constexpr int g = decltype(group)::value;
            wait_for_groups<kGroups - 1 - g>();
            // All lanes' copies of this group of filters have arrived.
            __syncwarp();
#pragma unroll
            for (int r = 0; r < kOutputs; ++r) {
                const float* filters_of_chunk =
                    filters_of_warp + (g * kOutputs + r) * kChunk * kTaps;
                float filter[kChannels * kTaps];
                if constexpr (kStrided) {
#pragma unroll
                    for (int i = 0; i < kChannels * kTaps; ++i) {
                        filter[i] =
                            filters_of_chunk[(i / kTaps * kWarp + lane) * kTaps +
                                             i % kTaps];
                    }
                } else {
#pragma unroll
                    for (int i = 0; i < kTaps; ++i) {
                        const Pack<kChannels> some =
                            reinterpret_cast<const Pack<kChannels>*>(
                                filters_of_chunk)[lane * kTaps + i];
#pragma unroll
                        for (int e = 0; e < kChannels; ++e) {
                            filter[i * kChannels + e] = some.at[e];
                        }
                    }
                }
#pragma unroll
                for (int c = 0; c < kChannels; ++c) {
#pragma unroll
                    for (int k = 0; k < kTaps; ++k) {
#pragma unroll
                        for (int p = 0; p < kTile; ++p) {
                            sum[r * kTile + p] +=
                                window[g][c][p + k] * filter[c * kTaps + k];
                        }
                    }
                }
            }
        });
    }

#pragma unroll
    for (int f = 0; f < kFolds; ++f) {
        const float folded = fold<kFold>(sum + f * kFold);
        if (lane % (kWarp / kFold) == 0) {
            partial[team][warp][f * kFold + lane / (kWarp / kFold)] = folded;
        }
    }
    __syncthreads();  // all warps have stored their sums before any are added
    const int position = first + mine % kTile;
    if (mine < kSums && position < kLength) {
        float total = offset_of_mine;
#pragma unroll
        for (int w = 0; w < kWarps; ++w) {
            total += partial[team][w][mine];
        }
        output[static_cast<size_t>(out + mine / kTile) * kLength + position] = total;
    }
}
