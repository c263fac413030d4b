// Idea: a matrix product: weights (c_out x taps) by the unfolded image (taps x pixels).
// From the rung before: the unfolded image exists only tile by tile; 8 maps x 8 pixels
// per thread, so that weights are reused as well; each tap is a row of the matrix.
// Requires: blocks of kThreads threads.
constexpr int kOuts = 64;
constexpr int kPixels = 128;
constexpr int kDepth = 8;
constexpr int kSums = 8;
constexpr int kAcross = kPixels / kSums;
constexpr int kThreads = 128;
static_assert(kThreads == kAcross * (kOuts / kSums),
              "each thread computes kSums x kSums outputs");
static_assert(kThreads == kPixels, "each thread loads the values of one pixel");
static_assert(kOuts * kDepth % kThreads == 0,
              "all threads load the same number of weights");

template <int kSize>
__global__ void __launch_bounds__(kThreads)
    convlayer_implicit_gemm(const float* __restrict__ input,
                            const float* __restrict__ weights,
                            float* __restrict__ output, int n, int c_in, int c_out)
{
    constexpr int kHalo = kSize / 2;
    constexpr int kTaps = kSize * kSize;
    __shared__ float a[kOuts][kDepth];
    __shared__ float b[kDepth][kPixels];
    const int plane = n * n, depth = c_in * kTaps;
    const int first_out = blockIdx.y * kOuts, first_pixel = blockIdx.x * kPixels;
    const int line = threadIdx.x / kAcross * kSums,
              place = threadIdx.x % kAcross * kSums;
    const int pixel = first_pixel + threadIdx.x;
    const int row = pixel / n - kHalo, col = pixel % n - kHalo;
    float sum[kSums][kSums] = {};
    for (int k0 = 0; k0 < depth; k0 += kDepth) {
#pragma unroll
        for (int i = threadIdx.x; i < kOuts * kDepth; i += kThreads) {
            const int out = i / kDepth, k = i % kDepth;
            const bool inside = first_out + out < c_out && k0 + k < depth;
            a[out][k] =
                inside ? weights[static_cast<size_t>(first_out + out) * depth + k0 + k]
                       : 0.0f;
        }
#pragma unroll
        for (int k = 0; k < kDepth; ++k) {
            const int map = (k0 + k) / kTaps, tap = (k0 + k) % kTaps;
            const int r = row + tap / kSize, c = col + tap % kSize;
            const bool inside =
                map < c_in && pixel < plane && r >= 0 && r < n && c >= 0 && c < n;
            b[k][threadIdx.x] =
                inside ? input[static_cast<size_t>(map) * plane + r * n + c] : 0.0f;
        }
        __syncthreads();  // both tiles are complete before any thread reads them

#pragma unroll
        for (int k = 0; k < kDepth; ++k) {
            float left[kSums], above[kSums];
#pragma unroll
            for (int i = 0; i < kSums; ++i) {
                left[i] = a[line + i][k];
                above[i] = b[k][place + i];
            }
#pragma unroll
            for (int i = 0; i < kSums; ++i) {
#pragma unroll
                for (int j = 0; j < kSums; ++j) {
                    sum[i][j] += left[i] * above[j];
                }
            }
        }
        // All reads of these tiles are done before the next tiles overwrite them.
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < kSums; ++i) {
#pragma unroll
        for (int j = 0; j < kSums; ++j) {
            const int out = first_out + line + i, at = first_pixel + place + j;
            if (out < c_out && at < plane)
                output[static_cast<size_t>(out) * plane + at] = sum[i][j];
        }
    }
}
