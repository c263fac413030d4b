// Idea: stage pieces of eight input maps in shared memory; read each float nine times.
// From the rung before: shared memory serves the nine reads of an input, none of which
// needs a border test.
// Requires: blocks of kThreads threads.
constexpr int kSide = 16;
constexpr int kThreads = 256;
constexpr int kMaps = 8;
static_assert(kThreads == kSide * kSide, "a thread for each output of the piece");

template <int kSize>
__global__ void __launch_bounds__(kThreads)
    convlayer_shared_inputs(const float* __restrict__ input,
                            const float* __restrict__ weights,
                            float* __restrict__ output, int n, int c_in, int c_out)
{
    constexpr int kHalo = kSize / 2;
    constexpr int kWide = kSide + kSize - 1;
    __shared__ float piece[kMaps][kWide][kWide];
    const int across = (n + kSide - 1) / kSide;
    const int first_row = blockIdx.x / across * kSide,
              first_col = blockIdx.x % across * kSide;
    const int out = blockIdx.y;
    const int y = threadIdx.x / kSide, x = threadIdx.x % kSide;
    const size_t plane = static_cast<size_t>(n) * n;
    float sum = 0.0f;
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
        __syncthreads();  // the pieces are complete before any thread reads them

        for (int map = 0; map < maps; ++map) {
            const float* taps =
                weights +
                (static_cast<size_t>(out) * c_in + first_map + map) * (kSize * kSize);
#pragma unroll
            for (int down = 0; down < kSize; ++down) {
#pragma unroll
                for (int right = 0; right < kSize; ++right) {
                    sum += taps[down * kSize + right] * piece[map][y + down][x + right];
                }
            }
        }
        // All reads of these pieces are done before the next pieces overwrite them.
        __syncthreads();
    }
    if (first_row + y < n && first_col + x < n) {
        output[out * plane + static_cast<size_t>(first_row + y) * n + first_col + x] =
            sum;
    }
}
