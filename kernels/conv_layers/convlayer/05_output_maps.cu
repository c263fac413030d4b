// Idea: a thread computes kOut output maps at its pixel, so a load serves kOut sums.
// From the rung before: kOut sums in registers instead of one: the reuse over output
// maps that the course report left out.
// Requires: blocks of kThreads threads.
constexpr int kSide = 16;
constexpr int kThreads = 256;
constexpr int kMaps = 8;
constexpr int kOut = 16;
static_assert(kThreads == kSide * kSide, "a thread for each pixel of the piece");

template <int kSize>
__global__ void __launch_bounds__(kThreads)
    convlayer_output_maps(const float* __restrict__ input,
                          const float* __restrict__ weights, float* __restrict__ output,
                          int n, int c_in, int c_out)
{
    constexpr int kHalo = kSize / 2;
    constexpr int kWide = kSide + kSize - 1;
    constexpr int kTaps = kSize * kSize;
    __shared__ float piece[kMaps][kWide][kWide];
    __shared__ float taps[kMaps][kTaps][kOut];
    const int across = (n + kSide - 1) / kSide;
    const int first_row = blockIdx.x / across * kSide,
              first_col = blockIdx.x % across * kSide;
    const int first_out = blockIdx.y * kOut;
    const int y = threadIdx.x / kSide, x = threadIdx.x % kSide;
    const size_t plane = static_cast<size_t>(n) * n;
    float sum[kOut] = {};
    for (int first_map = 0; first_map < c_in; first_map += kMaps) {
        const int maps = min(kMaps, c_in - first_map);
        for (int i = threadIdx.x; i < maps * kWide * kWide; i += kThreads) {
            const int map = i / (kWide * kWide), line = i / kWide % kWide,
                      place = i % kWide;
            const int row = first_row + line - kHalo, col = first_col + place - kHalo;
            const bool inside = row >= 0 && row < n && col >= 0 && col < n;
            piece[map][line][place] = inside ? input[(first_map + map) * plane +
                                                     static_cast<size_t>(row) * n + col]
                                             : 0.0f;
        }
        for (int i = threadIdx.x; i < kOut * maps * kTaps; i += kThreads) {
            const int out = i / (maps * kTaps), map = i / kTaps % maps, tap = i % kTaps;
            const bool inside = first_out + out < c_out;
            const size_t at =
                (static_cast<size_t>(first_out + out) * c_in + first_map + map) *
                    kTaps +
                tap;
            taps[map][tap][out] = inside ? weights[at] : 0.0f;
        }
        // Pieces and weights are complete before any thread reads them.
        __syncthreads();

        for (int map = 0; map < maps; ++map) {
#pragma unroll
            for (int down = 0; down < kSize; ++down) {
#pragma unroll
                for (int right = 0; right < kSize; ++right) {
                    const float value = piece[map][y + down][x + right];
#pragma unroll
                    for (int out = 0; out < kOut; ++out) {
                        sum[out] += taps[map][down * kSize + right][out] * value;
                    }
                }
            }
        }
        __syncthreads();  // all reads are done before the next pieces overwrite these
    }
    if (first_row + y >= n || first_col + x >= n) return;
#pragma unroll
    for (int out = 0; out < kOut; ++out) {
        if (first_out + out < c_out) {
            output[(first_out + out) * plane + static_cast<size_t>(first_row + y) * n +
                   first_col + x] = sum[out];
        }
    }
}
