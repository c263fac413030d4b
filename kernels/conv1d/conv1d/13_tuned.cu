// Idea: search for the best block shape for each layer.
// From the rung before: teams of warps; kGroups chunks and kOutputs filters per warp,
// kChannels channels per lane; several sums folded together.
// Requires: input and weight aligned to 16 bytes; a block of kTeams * kWarps warps for
// kTeams * kOutputs output channels.
#include "../shape.cuh"
#include "fold.cuh"
#include "transposed.cuh"

// kRowWidth: floats per load of the rows, 4 where a lane has whole rows of a multiple
// of 16 bytes. kFilterWidth: floats per load of the filters, 4 where channels * kTaps
// is a multiple of 4.
template <int kLength, int kTaps, int kRowWidth, int kFilterWidth, int kTeams,
          int kWarps, int kOutputs, int kGroups, int kChannels>
__global__ void __launch_bounds__(kTeams * kWarps * kWarp, 1)
    conv1d_tuned(const float* __restrict__ input, const float* __restrict__ weight,
                 const float* __restrict__ bias, float* __restrict__ output,
                 int channels)
{
    constexpr int kTile = tile_of(kLength), kPadding = kTaps / 2,
                  kWindow = kTile + 2 * kPadding;
    constexpr int kChunk = kWarp * kChannels;  // channels per warp at a time
    constexpr int kPacks = kChunk * kTaps / kFilterWidth;
    // Loads per lane for one filter's chunk.
    constexpr int kLoads = (kPacks + kWarp - 1) / kWarp;
    constexpr int kSums = kOutputs * kTile, kFold = fold_of(kSums),
                  kFolds = (kSums + kFold - 1) / kFold;
    static_assert(kTaps % 2 == 1, "an even number of taps has no middle");
    static_assert(kSums <= kWarps * kWarp, "each thread loads at most one bias");
    __shared__ __align__(
        sizeof(float4)) float transposed[kTeams * kWarps][kOutputs][kChunk * kTaps];
    __shared__ float partial[kTeams][kWarps][kFolds * kFold];

    const int team = threadIdx.x / (kWarps * kWarp);
    const int mine = threadIdx.x % (kWarps * kWarp);  // index within the team
    const int out = (blockIdx.x * kTeams + team) * kOutputs;
    const int first = kLength > kTile ? blockIdx.y * kTile : 0;
    const int lane = mine % kWarp;
    const int warp = mine / kWarp;
    auto& filters_of_warp = transposed[threadIdx.x / kWarp];
    const float offset_of_mine = mine < kSums ? bias[out + mine / kTile] : 0.0f;
    float sum[kFolds * kFold] = {};
    for (int base = warp * kChunk; base < channels; base += kGroups * kWarps * kChunk) {
        // All loads come first, so that all are in flight at once.
        Pack<kFilterWidth> loaded[kGroups][kOutputs][kLoads] = {};
        float window[kGroups][kChannels][kWindow] = {};
#pragma unroll
        for (int g = 0; g < kGroups; ++g) {
            const int chunk = base + g * kWarps * kChunk;
            const int floats = min(kChunk, channels - chunk) * kTaps;
#pragma unroll
            for (int r = 0; r < kOutputs; ++r) {
                const float* filters =
                    weight + (static_cast<size_t>(out + r) * channels + chunk) * kTaps;
                load_filters(loaded[g][r], filters, floats, lane,
                             [](auto* from) { return load_once(from); });
            }
            const int channel = chunk + lane * kChannels;
            if constexpr (kRowWidth == 4) {
                if (channel < channels) {
                    const float* rows = input + static_cast<size_t>(channel) * kLength;
#pragma unroll
                    for (int i = 0; i < kChannels * kLength / 4; ++i) {
                        const Pack<4> four = reinterpret_cast<const Pack<4>*>(rows)[i];
#pragma unroll
                        for (int e = 0; e < 4; ++e) {
                            window[g][(4 * i + e) / kLength]
                                  [kPadding + (4 * i + e) % kLength] = four.at[e];
                        }
                    }
                }
            } else {
#pragma unroll
                for (int c = 0; c < kChannels; ++c) {
#pragma unroll
                    for (int j = 0; j < kWindow; ++j) {
                        const int at = first + j - kPadding;
                        if (channel + c < channels && at >= 0 && at < kLength) {
                            window[g][c][j] =
                                input[static_cast<size_t>(channel + c) * kLength + at];
                        }
                    }
                }
            }
        }

#pragma unroll
        for (int g = 0; g < kGroups; ++g) {
            __syncwarp();  // all lanes have read the previous group's filters
#pragma unroll
            for (int r = 0; r < kOutputs; ++r) {
                store_filters<kChunk * kTaps>(filters_of_warp[r], loaded[g][r], lane);
            }
            __syncwarp();  // the warp's filters are stored before any lane reads them
#pragma unroll
            for (int r = 0; r < kOutputs; ++r) {
                float filter[kTaps * kChannels];
#pragma unroll
                for (int q = 0; q < kTaps; ++q) {
                    const Pack<kChannels> some =
                        reinterpret_cast<const Pack<kChannels>*>(
                            filters_of_warp[r])[lane * kTaps + q];
#pragma unroll
                    for (int e = 0; e < kChannels; ++e) {
                        filter[q * kChannels + e] = some.at[e];
                    }
                }
                multiply<kTile, kTaps>(sum + r * kTile, window[g], filter);
            }
        }
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
