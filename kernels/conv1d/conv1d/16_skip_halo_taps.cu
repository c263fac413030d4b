// Idea: skip products with taps beyond the row, which are many if rows are short.
// From the rung before: if a tile is a whole row, products with the zeros beyond it are
// left out at compile time.
// Requires: as the rung before.
#include "15_consume_as_arrive.cu"

// The products inside the row, known at compile time if a tile is a whole row.
struct TapsInside {
    template <int kLength, int kPadding>
    static __device__ constexpr bool used(int position, int tap)
    {
        const int at = position + tap;
        return kLength > kMaxTile || (at >= kPadding && at < kPadding + kLength);
    }
};

template <int kLength, int kTaps, int kRowWidth, int kFilterWidth, int kTeams,
          int kWarps, int kOutputs, int kGroups, int kChannels, int kBlocks,
          bool kStrided>
__global__ void __launch_bounds__(kTeams * kWarps * kWarp, kBlocks)
    conv1d_skip_halo_taps(const float* input, const float* __restrict__ weight,
                          const float* __restrict__ bias, float* __restrict__ output,
                          int channels)
{
    convolve_as_filters_arrive<kLength, kTaps, kRowWidth, kFilterWidth, kTeams, kWarps,
                               kOutputs, kGroups, kChannels, kStrided, TapsInside>(
        input, weight, bias, output, channels);
}
