// Idea: 16 bytes per access: transposed weights, pixels in two halves, wide stores.
// From the rung before: the inner loop reads 16 floats with four loads, free of bank
// conflicts.
// Requires: blocks of kThreads threads; weights and output aligned to 16 bytes; kWidth
// = 4 where n is even and the number of weights of an output map a multiple of 4,
// kWidth = 1 otherwise.
constexpr int kOuts = 64;
constexpr int kPixels = 128;
constexpr int kDepth = 8;
constexpr int kSums = 8;
constexpr int kAcross = kPixels / kSums;
constexpr int kHalf = kPixels / 2;
// The padding puts an output map's two quads into different banks.
constexpr int kPitch = kOuts + 4;
constexpr int kThreads = 128;
static_assert(kThreads == kAcross * (kOuts / kSums),
              "each thread computes kSums x kSums outputs");
static_assert(kThreads == kPixels, "each thread loads the values of one pixel");
static_assert(kOuts * kDepth == kThreads * 4, "each thread loads four weights");

template <int kSize, int kWidth>
__global__ void __launch_bounds__(kThreads)
    convlayer_vectorised(const float* __restrict__ input,
                         const float* __restrict__ weights, float* __restrict__ output,
                         int n, int c_in, int c_out)
{
    constexpr int kHalo = kSize / 2;
    constexpr int kTaps = kSize * kSize;
    __shared__ alignas(16) float a[kDepth][kPitch];
    __shared__ alignas(16) float b[kDepth][kPixels];
    const int plane = n * n, depth = c_in * kTaps;
    const int first_out = blockIdx.y * kOuts, first_pixel = blockIdx.x * kPixels;
    const int line = threadIdx.x / kAcross * kSums, quad = threadIdx.x % kAcross * 4;
    const int pixel = first_pixel + threadIdx.x;
    const int row = pixel / n - kHalo, col = pixel % n - kHalo;
    const int a_out = threadIdx.x / 2, a_k = threadIdx.x % 2 * 4;
    const bool a_inside = first_out + a_out < c_out;
    const float* from =
        weights + static_cast<size_t>(a_inside ? first_out + a_out : 0) * depth + a_k;
    float sum[kSums][kSums] = {};
    for (int k0 = 0; k0 < depth; k0 += kDepth) {
        float transposed[4] = {};
        if constexpr (kWidth == 4) {
            if (a_inside && k0 + a_k < depth) {
                *reinterpret_cast<float4*>(transposed) =
                    *reinterpret_cast<const float4*>(from + k0);
            }
        } else {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                if (a_inside && k0 + a_k + i < depth) transposed[i] = from[k0 + i];
            }
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            a[a_k + i][a_out] = transposed[i];
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
            for (int half = 0; half < 2; ++half) {
                *reinterpret_cast<float4*>(left + half * 4) =
                    *reinterpret_cast<const float4*>(&a[k][line + half * 4]);
                *reinterpret_cast<float4*>(above + half * 4) =
                    *reinterpret_cast<const float4*>(&b[k][half * kHalf + quad]);
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
        for (int half = 0; half < 2; ++half) {
            const int out = first_out + line + i,
                      at = first_pixel + half * kHalf + quad;
            float* to = output + static_cast<size_t>(out) * plane + at;
            if constexpr (kWidth == 4) {
                if (out < c_out && at < plane) {
                    *reinterpret_cast<float4*>(to) =
                        *reinterpret_cast<const float4*>(&sum[i][half * 4]);
                }
            } else {
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    if (out < c_out && at + j < plane) to[j] = sum[i][half * 4 + j];
                }
            }
        }
    }
}
