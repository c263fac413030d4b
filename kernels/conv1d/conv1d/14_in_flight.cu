// Idea: filters on their way need no registers: with cp.async they go to shared memory, for all output channels of an SM.
// From the rung before: cp.async instead of loads and stores; kBlocks blocks an SM, so that all of them fit at once.
// Requires: as the rung before; shared memory for all pieces that a block loads at once.
constexpr int kMaxTile = 16;
constexpr int kWarp = 32;
constexpr unsigned kAllLanes = 0xffffffffu;

constexpr int tile_of(int length)
{
    return length < kMaxTile ? length : kMaxTile;
}

// How many sums are folded together: a power of two, and no more than there are lanes.
constexpr int fold_of(int sums)
{
    int fold = 1;
    while (fold < sums && fold < kWarp) {
        fold *= 2;
    }
    return fold;
}

// So many floats in one access.
template <int kWidth>
struct alignas(kWidth * sizeof(float)) Pack {
    float at[kWidth];
};

// Starts to copy one or four floats from global to shared memory. Before compute capability 8.0 there is no cp.async: then
// the copy is over when this returns, and there is nothing to wait for.
template <int kWidth>
__device__ void copy_async(float* to, const float* from)
{
#if __CUDA_ARCH__ >= 800
    const unsigned shared = static_cast<unsigned>(__cvta_generic_to_shared(to));
    if constexpr (kWidth == 4) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared), "l"(from) : "memory");
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared), "l"(from) : "memory");
    }
#else
    *reinterpret_cast<Pack<kWidth>*>(to) = *reinterpret_cast<const Pack<kWidth>*>(from);
#endif
}

// Starts to copy a warp's piece of a filter, kFloats of them or, in the last piece, fewer: then zeros stand for the others.
template <int kFloats, int kWidth>
__device__ void copy_chunk(float* to, const float* from, int floats)
{
    const int first = threadIdx.x % kWarp * kWidth;
    if (floats >= kFloats) {  // the same for all lanes, and nothing more is asked
#pragma unroll
        for (int i = 0; i < kFloats; i += kWarp * kWidth) {
            if (i + kWarp * kWidth <= kFloats || i + first < kFloats) {
                copy_async<kWidth>(to + first + i, from + first + i);
            }
        }
    } else {
#pragma unroll 1
        for (int at = first; at < kFloats; at += kWarp * kWidth) {
            if (at < floats) {
                copy_async<kWidth>(to + at, from + at);
            } else {
                for (int e = 0; e < kWidth; ++e) {
                    to[at + e] = 0.0f;
                }
            }
        }
    }
}

// The copies started since the last call are one group.
__device__ void end_group()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits until at most kLeft groups of this thread are still on their way.
template <int kLeft>
__device__ void wait_for_groups()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
#endif
}

// Adds up kFold values over the warp; lane i gets the sum of value i / (kWarp / kFold). In each step a lane keeps half of
// its values and gives the other half to the lane that keeps those: kFold - 1 shuffles, and one for each step after.
template <int kFold, int kOffset = kWarp / 2>
__device__ float fold(float* value)
{
    if constexpr (kFold > 1) {
        const bool upper = threadIdx.x & kOffset;
#pragma unroll
        for (int i = 0; i < kFold / 2; ++i) {
            const float given = upper ? value[i] : value[i + kFold / 2];
            const float kept = upper ? value[i + kFold / 2] : value[i];
            value[i] = kept + __shfl_xor_sync(kAllLanes, given, kOffset);
        }
        return fold<kFold / 2, kOffset / 2>(value);
    } else {
#pragma unroll
        for (int offset = kOffset; offset > 0; offset /= 2) {
            value[0] += __shfl_xor_sync(kAllLanes, value[0], offset);
        }
        return value[0];
    }
}

// A number as a type, and a function called with 0, 1, ... kEnd - 1: how many groups are left must be a constant.
template <int kValue>
struct Number {
    static constexpr int value = kValue;
};
template <int kEnd, int kNext, typename Function>
__device__ void for_each_group(Function function)
{
    if constexpr (kNext < kEnd) {
        function(Number<kNext>{});
        for_each_group<kEnd, kNext + 1>(function);
    }
}

// kRowWidth: floats per load of the rows, 4 where they are whole and a multiple of 16 bytes. kFilterWidth: of the filters,
// 4 where channels * kTaps is a multiple of 4. kApart: a lane's channels lie 32 apart, so that neighbouring lanes load
// neighbouring rows; else they are neighbours, and their filters come from shared memory in fewer loads.
// The input is not __restrict__, or the compiler might move its loads behind the wait for the filters.
template <int kLength, int kTaps, int kRowWidth, int kFilterWidth, int kTeams, int kWarps, int kOutputs, int kGroups,
          int kChannels, int kBlocks, bool kApart>
__global__ void __launch_bounds__(kTeams* kWarps* kWarp, kBlocks)
    conv1d_in_flight(const float* input, const float* __restrict__ weight,
                     const float* __restrict__ bias, float* __restrict__ output, int channels)
{
    constexpr int kTile = tile_of(kLength), kPadding = kTaps / 2, kWindow = kTile + 2 * kPadding;
    constexpr int kChunk = kWarp * kChannels;  // channels of a warp at a time
    constexpr int kSums = kOutputs * kTile, kFold = fold_of(kSums), kFolds = (kSums + kFold - 1) / kFold;
    static_assert(kTaps % 2 == 1, "with an even number of taps there is no middle one");
    static_assert(kSums <= kWarps * kWarp, "each thread asks for at most one bias");
    extern __shared__ __align__(sizeof(float4)) float staged[];  // of each warp: kGroups x kOutputs filters' chunks
    __shared__ float partial[kTeams][kWarps][kFolds * kFold];

    const int team = threadIdx.x / (kWarps * kWarp);
    const int mine = threadIdx.x % (kWarps * kWarp);  // of the team's threads
    const int out = (blockIdx.x * kTeams + team) * kOutputs;
    const int first = kLength > kTile ? blockIdx.y * kTile : 0;
    const int lane = mine % kWarp;
    const int warp = mine / kWarp;
    float* filters_of_warp = staged + threadIdx.x / kWarp * (kGroups * kOutputs * kChunk * kTaps);
    const float offset_of_mine = mine < kSums ? bias[out + mine / kTile] : 0.0f;
    float sum[kFolds * kFold] = {};
    for (int base = warp * kChunk; base < channels; base += kGroups * kWarps * kChunk) {
        __syncwarp();  // every lane has read its filters of the chunks before
        // All loads and copies first, so that all are on their way at once; rows before filters, for behind them the
        // compiler would move their loads past the wait.
        float window[kGroups][kChannels][kWindow] = {};
#pragma unroll
        for (int g = 0; g < kGroups; ++g) {
            const int chunk = base + g * kWarps * kChunk;
            const int channel = chunk + (kApart ? lane : lane * kChannels);
#pragma unroll
            for (int c = 0; c < kChannels; ++c) {
                const int row = channel + c * (kApart ? kWarp : 1);
                const float* from = input + static_cast<size_t>(row) * kLength;
                if constexpr (kRowWidth == 4) {
#pragma unroll
                    for (int i = 0; i < kLength / 4; ++i) {
                        const Pack<4> four = row < channels ? reinterpret_cast<const Pack<4>*>(from)[i] : Pack<4>{};
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
                const float* filters = weight + (static_cast<size_t>(out + r) * channels + chunk) * kTaps;
                float* to = filters_of_warp + (g * kOutputs + r) * kChunk * kTaps;
                copy_chunk<kChunk * kTaps, kFilterWidth>(to, filters, floats);
            }
            end_group();
        }

        for_each_group<kGroups, 0>([&](auto group) {
            constexpr int g = decltype(group)::value;
            wait_for_groups<kGroups - 1 - g>();
            __syncwarp();  // this group of the warp's filters is there before any lane reads its own
#pragma unroll
            for (int r = 0; r < kOutputs; ++r) {
                const float* filters_of_chunk = filters_of_warp + (g * kOutputs + r) * kChunk * kTaps;
                float filter[kChannels * kTaps];
                if constexpr (kApart) {
#pragma unroll
                    for (int i = 0; i < kChannels * kTaps; ++i) {
                        filter[i] = filters_of_chunk[(i / kTaps * kWarp + lane) * kTaps + i % kTaps];
                    }
                } else {
#pragma unroll
                    for (int i = 0; i < kTaps; ++i) {
                        const Pack<kChannels> some =
                            reinterpret_cast<const Pack<kChannels>*>(filters_of_chunk)[lane * kTaps + i];
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
                            sum[r * kTile + p] += window[g][c][p + k] * filter[c * kTaps + k];
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
    __syncthreads();  // every warp has stored its sums before a team's first threads add them up
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
