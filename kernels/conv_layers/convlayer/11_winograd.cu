// Idea: Winograd's F(2, 3) along rows: two outputs of three taps from four products.
// From the rung before: four products instead of six, of transformed inputs and
// weights; at the very end, four sums give two outputs.
// Requires: as direct, with k = 3, and shared memory for the transformed weights of a
// stage after the ring.
#include "tiles.cuh"

constexpr int kTap = 3;  // taps of a row
constexpr int kProducts = 4;  // products for two outputs

// Four inputs of a row become the factors of the four products: d0 - d2, d1 + d2, d2 -
// d1, d1 - d3.
__device__ void transform_inputs(float* to, const float* d)
{
    to[0] = d[0] - d[2];
    to[1] = d[1] + d[2];
    to[2] = d[2] - d[1];
    to[3] = d[1] - d[3];
}

template <int kSize, int kOuts, int kHigh, int kWide, int kOutGroups, int kDown,
          int kAcross, int kPitch, int kBlocks, int kUnroll, bool kWhole, bool kQuads>
__global__ void __launch_bounds__(kOutGroups * kDown * kAcross, kBlocks)
    convlayer_winograd(const float* __restrict__ input,
                       const float* __restrict__ weights, float* __restrict__ output,
                       int n, int c_in, int c_out, int maps_of_part)
{
    using C = Cut<kTap, kOuts, kHigh, kWide, kOutGroups, kDown, kAcross, kPitch>;
    constexpr int kPairs = kWide / 2;
    static_assert(kSize == kTap, "these factors are for three taps");
    static_assert(kWide % 4 == 0, "pairs of outputs, four a store");
    extern __shared__ float4 memory[];
    const float* const ring = reinterpret_cast<const float*>(memory);
    const unsigned ring_at = static_cast<unsigned>(__cvta_generic_to_shared(memory));
    // [map and row][product][output map].
    float* const factors = reinterpret_cast<float*>(memory) + kStages * C::kStage;

    // Neighbouring lanes compute the same pixels for two groups of maps, so they share
    // every read of the window.
    const int thread = threadIdx.x,
              group = thread % 2 + thread / (2 * kDown * kAcross) * 2;
    const int x = thread / 2 % kAcross, y = thread / 2 / kAcross % kDown;
    const Place place = place_of_block<C>(n, c_in, maps_of_part);
    Fetch<C, kWhole> fetch(input, weights, n, c_in, c_out, place);

    float sum[kOuts][kHigh][kPairs][kProducts] = {};
    const int stages = (maps_of_part + kMaps - 1) / kMaps;
    for (int stage = 0; stage < kStages - 1; ++stage) {
        if (stage < stages) fetch.stage(ring_at + stage * (kFloat * C::kStage));
        close_group();
    }
    for (int i = 0, here = 0, next = kStages - 1; i < stages; ++i) {
        wait_for_groups<kStages - 2>();
        // This stage has arrived, and all reads of the one replaced next are done.
        __syncthreads();
        if (i + kStages - 1 < stages)
            fetch.stage(ring_at + next * (kFloat * C::kStage));
        close_group();
        // Three taps of a row become g0, (g0 + g1 + g2) / 2, (g0 - g1 + g2) / 2, g2.
        const float* const taps = ring + here * C::kStage;
#pragma unroll
        for (int j = thread; j < kMaps * kTap * C::kTileOuts; j += C::kThreads) {
            const int line = j / C::kTileOuts, out = j % C::kTileOuts;
            const float* const g = taps + line * kTap * C::kWeightPitch + out;
            float* const to = factors + line * kProducts * C::kWeightPitch + out;
            const float even = 0.5f * (g[0] + g[2 * C::kWeightPitch]),
                        odd = 0.5f * g[C::kWeightPitch];
            to[0] = g[0];
            to[C::kWeightPitch] = even + odd;
            to[2 * C::kWeightPitch] = even - odd;
            to[3 * C::kWeightPitch] = g[2 * C::kWeightPitch];
        }
        __syncthreads();  // all factors are stored before any thread reads them
        const float* const factors_here = factors + group * kOuts;
        const float* const window_here =
            ring + here * C::kStage + C::kStageWeights + y * kHigh * kPitch + x * kWide;
#pragma unroll kUnroll
        for (int m = 0; m < kMaps; ++m) {
            float value[kHigh + kTap - 1][kPairs][kProducts];
#pragma unroll
            for (int line = 0; line < kHigh + kTap - 1; ++line) {
                float window[C::kStretch];
                read_row<C::kWindow>(window,
                                     window_here + m * C::kPlane + line * kPitch);
#pragma unroll
                for (int pair = 0; pair < kPairs; ++pair) {
                    transform_inputs(value[line][pair], window + 2 * pair);
                }
            }
#pragma unroll
            for (int row = 0; row < kTap; ++row) {
#pragma unroll
                for (int p = 0; p < kProducts; ++p) {
                    float factor[kOuts];
                    read_row<kOuts>(factor,
                                    factors_here + ((m * kTap + row) * kProducts + p) *
                                                       C::kWeightPitch);
#pragma unroll
                    for (int o = 0; o < kOuts; ++o) {
#pragma unroll
                        for (int down = 0; down < kHigh; ++down) {
#pragma unroll
                            for (int pair = 0; pair < kPairs; ++pair) {
                                sum[o][down][pair][p] +=
                                    factor[o] * value[down + row][pair][p];
                            }
                        }
                    }
                }
            }
        }
        here = here + 1 == kStages ? 0 : here + 1;
        next = next + 1 == kStages ? 0 : next + 1;
    }

    const int row = place.row + y * kHigh, col = place.col + x * kWide,
              out = place.out + group * kOuts;
    float* to =
        output + ((static_cast<size_t>(blockIdx.z) * c_out + out) * n + row) * n + col;
#pragma unroll
    for (int o = 0; o < kOuts; ++o, to += static_cast<size_t>(n) * n) {
#pragma unroll
        for (int down = 0; down < kHigh; ++down) {
            float outputs[kWide];
#pragma unroll
            for (int pair = 0; pair < kPairs; ++pair) {
                const float* s = sum[o][down][pair];
                outputs[2 * pair] = s[0] + s[1] + s[2];
                outputs[2 * pair + 1] = s[1] - s[2] - s[3];
            }
            if (out + o < c_out && row + down < n)
                write_row<kWide, kQuads>(to + down * n, outputs, col, n);
        }
    }
}
