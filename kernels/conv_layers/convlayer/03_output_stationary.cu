// Idea: a thread owns one output, sums it in a register and stores it once.
// From the rung before: no atomics and no clearing: the sum moves from memory to a
// register.
// Requires: blocks of kThreads threads.
constexpr int kThreads = 128;

template <typename T, int kSize>
__global__ void __launch_bounds__(kThreads)
    convlayer_output_stationary(const T* __restrict__ input,
                                const T* __restrict__ weights, T* __restrict__ output,
                                int n, int c_in, int c_out)
{
    constexpr int kHalo = kSize / 2;
    const size_t plane = static_cast<size_t>(n) * n;
    const int at = blockIdx.x * kThreads + threadIdx.x;
    const int out = blockIdx.y;
    if (at >= plane) return;
    const int row = at / n, col = at % n;
    const T* taps = weights + static_cast<size_t>(out) * c_in * (kSize * kSize);
    T sum = 0;
    for (int map = 0; map < c_in; ++map) {
#pragma unroll
        for (int down = 0; down < kSize; ++down) {
#pragma unroll
            for (int right = 0; right < kSize; ++right) {
                const int r = row + down - kHalo, c = col + right - kHalo;
                const bool inside = r >= 0 && r < n && c >= 0 && c < n;
                sum += taps[down * kSize + right] *
                       (inside ? input[map * plane + static_cast<size_t>(r) * n + c]
                               : T(0));
            }
        }
        taps += kSize * kSize;
    }
    output[out * plane + at] = sum;
}
