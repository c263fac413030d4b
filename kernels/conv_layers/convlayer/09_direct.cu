// Idea: no matrix: a thread reads a window once per map and uses it for all taps.
// From the rung before: kOuts maps x kHigh x kWide pixels per thread; each input is in
// shared memory once instead of nine times.
// Requires: blocks of kOutGroups * kDown * kAcross threads, kStages stages of shared
// memory; output aligned to 16 bytes. kWhole: every part has maps_of_part input maps, a
// multiple of kMaps. kQuads: n and kWide are multiples of 4.
#include "tiles.cuh"

template <int kSize, int kOuts, int kHigh, int kWide, int kOutGroups, int kDown,
          int kAcross, int kPitch, int kBlocks, int kUnroll, bool kWhole, bool kQuads,
          typename T = float>
__global__ void __launch_bounds__(kOutGroups * kDown * kAcross, kBlocks)
    convlayer_direct(const T* __restrict__ input, const T* __restrict__ weights,
                     T* __restrict__ output, int n, int c_in, int c_out,
                     int maps_of_part)
{
    using C = Cut<kSize, kOuts, kHigh, kWide, kOutGroups, kDown, kAcross, kPitch>;
    static_assert(!kQuads || kWide % 4 == 0, "four outputs a store");
    extern __shared__ float4 memory[];
    const T* const ring = reinterpret_cast<const T*>(memory);
    const unsigned ring_at = static_cast<unsigned>(__cvta_generic_to_shared(memory));

    // Neighbouring lanes compute the same pixels for two groups of maps, so they share
    // every read of the window.
    const int thread = threadIdx.x,
              group = thread % 2 + thread / (2 * kDown * kAcross) * 2;
    const int x = thread / 2 % kAcross, y = thread / 2 / kAcross % kDown;
    const Place place = place_of_block<C>(n, c_in, maps_of_part);
    // Copies move bits, regardless of type.
    Fetch<C, kWhole> fetch(reinterpret_cast<const float*>(input),
                           reinterpret_cast<const float*>(weights), n, c_in, c_out,
                           place);

    T sum[kOuts][kHigh][kWide] = {};
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
        const T* const weights_here = ring + here * C::kStage + group * kOuts;
        const T* const window_here = ring + here * C::kStage + C::kStageWeights +
                                         y * kHigh * kPitch +
                                         x * (C::kPrivate ? C::kStretch : kWide);
#pragma unroll kUnroll
        for (int m = 0; m < kMaps; ++m) {
            T window[kHigh + kSize - 1][C::kStretch];
#pragma unroll
            for (int line = 0; line < kHigh + kSize - 1; ++line) {
                read_row<C::kWindow>(window[line],
                                     window_here + m * C::kPlane + line * kPitch);
            }
#pragma unroll
            for (int tap = 0; tap < C::kTaps; ++tap) {
                T weight[kOuts];
                read_row<kOuts>(weight,
                                weights_here + (m * C::kTaps + tap) * C::kWeightPitch);
#pragma unroll
                for (int o = 0; o < kOuts; ++o) {
#pragma unroll
                    for (int down = 0; down < kHigh; ++down) {
#pragma unroll
                        for (int right = 0; right < kWide; ++right) {
                            sum[o][down][right] +=
                                weight[o] *
                                window[down + tap / kSize][right + tap % kSize];
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
    T* to =
        output + ((static_cast<size_t>(blockIdx.z) * c_out + out) * n + row) * n + col;
#pragma unroll
    for (int o = 0; o < kOuts; ++o, to += static_cast<size_t>(n) * n) {
#pragma unroll
        for (int down = 0; down < kHigh; ++down) {
            if (out + o < c_out && row + down < n)
                write_row<kWide, kQuads>(to + down * n, sum[o][down], col, n);
        }
    }
}
