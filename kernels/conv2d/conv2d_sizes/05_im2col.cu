// Idea: unfold the image, then multiply matrices: the filter is one row.
// From the rung before: a different algorithm, for comparison, in two launches. Row t
// of the unfolded image is the image shifted by tap t: k x k images of memory in all.
// Requires: blocks of kThreads threads; a grid of pixels, and of taps for the first
// launch.
#include "../conv2d/border.cuh"

constexpr int kThreads = 256;

template <int kDown, int kAcross, Border kBorder>
__global__ void __launch_bounds__(kThreads)
    conv2d_unfold(const float* __restrict__ image, float* __restrict__ unfolded,
                  int rows, int cols)
{
    const size_t at = static_cast<size_t>(blockIdx.x) * kThreads + threadIdx.x,
                 pixels = static_cast<size_t>(rows) * cols;
    if (at >= pixels) return;
    const int tap = blockIdx.y;
    const int row = static_cast<int>(at / cols) + tap / kAcross - kDown / 2,
              col = static_cast<int>(at % cols) + tap % kAcross - kAcross / 2;
    unfolded[tap * pixels + at] = pixel<kBorder>(image, row, col, rows, cols);
}

// A matrix product whose left factor has a single row.
template <int kTaps>
__global__ void __launch_bounds__(kThreads)
    conv2d_filter_row(const float* __restrict__ unfolded,
                      const float* __restrict__ filter, float* __restrict__ result,
                      size_t pixels)
{
    const size_t at = static_cast<size_t>(blockIdx.x) * kThreads + threadIdx.x;
    if (at >= pixels) return;
    float sum = 0.0f;
#pragma unroll
    for (int tap = 0; tap < kTaps; ++tap) {
        sum += filter[tap] * unfolded[tap * pixels + at];
    }
    result[at] = sum;
}
