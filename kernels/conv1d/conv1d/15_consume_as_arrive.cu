// Idea: use each filter as it arrives, while the next ones are still in flight.
// From the rung before: each output channel's filters are separate groups, and its sums
// are folded as soon as they are complete.
// Requires: as the rung before.
#include "../shape.cuh"
#include "async_filters.cuh"
#include "fold.cuh"

// The products to compute, by position within the tile and by tap: all of them, even
// those with the zeros beyond the row.
struct EveryTap {
    template <int kLength, int kPadding>
    static __device__ constexpr bool used(int position, int tap)
    {
        return true;
    }
};

// kRowWidth: floats per load of the rows, 4 where a block has whole rows of a multiple
// of 16 bytes. kFilterWidth: floats per copy of the filters, 4 where channels * kTaps
// is a multiple of 4. kStrided: a lane's channels are 32 apart, so that neighbouring
// lanes load neighbouring rows; otherwise they are adjacent, and their filters take
// fewer loads from shared memory. The input is not __restrict__: otherwise the compiler
// might move its loads past the wait for the filters.
template <int kLength, int kTaps, int kRowWidth, int kFilterWidth, int kTeams,
          int kWarps, int kOutputs, int kGroups, int kChannels, bool kStrided,
          class Taps>
__device__ __forceinline__ void convolve_as_filters_arrive(
    const float* input, const float* __restrict__ weight,
    const float* __restrict__ bias, float* __restrict__ output, int channels)
{
    constexpr int kTile = tile_of(kLength), kPadding = kTaps / 2,
                  kWindow = kTile + 2 * kPadding;
    constexpr int kChunk = kWarp * kChannels;  // channels per warp at a time
    constexpr int kSums = kOutputs * kTile, kFold = fold_of(kTile);
    static_assert(kTaps % 2 == 1, "an even number of taps has no middle");
    static_assert(kSums <= kWarps * kWarp, "each thread loads at most one bias");
    // kGroups x kOutputs chunks per warp.
    extern __shared__ __align__(sizeof(float4)) float staged[];
    __shared__ float partial[kTeams][kWarps][kOutputs][kFold];

    const int team = threadIdx.x / (kWarps * kWarp);
    const int mine = threadIdx.x % (kWarps * kWarp);  // index within the team
    const int out = (blockIdx.x * kTeams + team) * kOutputs;
    const int first = kLength > kTile ? blockIdx.y * kTile : 0;
    const int lane = mine % kWarp;
    const int warp = mine / kWarp;
    float* filters_of_warp =
        staged + threadIdx.x / kWarp * (kGroups * kOutputs * kChunk * kTaps);
    const float offset_of_mine = mine < kSums ? bias[out + mine / kTile] : 0.0f;
    for (int i = lane; i < kOutputs * kFold; i += kWarp) {
        partial[team][warp][i / kFold][i % kFold] = 0.0f;
    }
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
        for (int r = 0; r < kOutputs; ++r) {
#pragma unroll
            for (int g = 0; g < kGroups; ++g) {
                const int chunk = base + g * kWarps * kChunk;
                const int floats = min(kChunk, channels - chunk) * kTaps;
                const float* filters =
                    weight + (static_cast<size_t>(out + r) * channels + chunk) * kTaps;
                float* to = filters_of_warp + (r * kGroups + g) * kChunk * kTaps;
                copy_chunk<kChunk * kTaps, kFilterWidth>(to, filters, floats);
                close_group();
            }
        }

        float sum[kFold] = {};
        for_each_group<kOutputs * kGroups, 0>([&](auto group) {
            constexpr int i = decltype(group)::value, r = i / kGroups, g = i % kGroups;
            wait_for_groups<kOutputs * kGroups - 1 - i>();
            // All lanes' copies of this group of filters have arrived.
            __syncwarp();
            const float* filters_of_chunk = filters_of_warp + i * kChunk * kTaps;
            float filter[kChannels * kTaps];
            if constexpr (kStrided) {
#pragma unroll
                for (int f = 0; f < kChannels * kTaps; ++f) {
                    filter[f] = filters_of_chunk[(f / kTaps * kWarp + lane) * kTaps +
                                                 f % kTaps];
                }
            } else {
#pragma unroll
                for (int f = 0; f < kTaps; ++f) {
                    const Pack<kChannels> some =
                        reinterpret_cast<const Pack<kChannels>*>(
                            filters_of_chunk)[lane * kTaps + f];
#pragma unroll
                    for (int e = 0; e < kChannels; ++e) {
                        filter[f * kChannels + e] = some.at[e];
                    }
                }
            }
#pragma unroll
            for (int c = 0; c < kChannels; ++c) {
#pragma unroll
                for (int k = 0; k < kTaps; ++k) {
#pragma unroll
                    for (int p = 0; p < kTile; ++p) {
                        if (Taps::template used<kLength, kPadding>(p, k)) {
                            sum[p] += window[g][c][p + k] * filter[c * kTaps + k];
                        }
                    }
                }
            }
            // The sums of this output channel are complete.
            if constexpr (g == kGroups - 1) {
                const float folded = fold<kFold>(sum);
                if (lane % (kWarp / kFold) == 0) {
                    partial[team][warp][r][lane / (kWarp / kFold)] += folded;
                }
#pragma unroll
                for (int p = 0; p < kFold; ++p) {
                    sum[p] = 0.0f;
                }
            }
        });
    }

    __syncthreads();  // all warps have stored their sums before any are added
    const int position = first + mine % kTile;
    if (mine < kSums && position < kLength) {
        float total = offset_of_mine;
#pragma unroll
        for (int w = 0; w < kWarps; ++w) {
            total += partial[team][w][mine / kTile][mine % kTile];
        }
        output[static_cast<size_t>(out + mine / kTile) * kLength + position] = total;
    }
}

template <int kLength, int kTaps, int kRowWidth, int kFilterWidth, int kTeams,
          int kWarps, int kOutputs, int kGroups, int kChannels, int kBlocks,
          bool kStrided>
__global__ void __launch_bounds__(kTeams * kWarps * kWarp, kBlocks)
    conv1d_consume_as_arrive(const float* input, const float* __restrict__ weight,
                             const float* __restrict__ bias, float* __restrict__ output,
                             int channels)
{
    convolve_as_filters_arrive<kLength, kTaps, kRowWidth, kFilterWidth, kTeams, kWarps,
                               kOutputs, kGroups, kChannels, kStrided, EveryTap>(
        input, weight, bias, output, channels);
}
