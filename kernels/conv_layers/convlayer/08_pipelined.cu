// Idea: copy asynchronously: two tiles are in flight while one is used.
// From the rung before: cp.async into a ring of kStages tiles, one barrier per tile;
// zero-fill for elements outside.
// Requires: blocks of kThreads threads; output aligned to 16 bytes; kWidth = 4 where n
// is even.
#include "../../common/async_copy.cuh"

constexpr int kOuts = 64;
constexpr int kPixels = 128;
constexpr int kDepth = 8;
constexpr int kSums = 8;
constexpr int kStages = 3;
constexpr int kAcross = kPixels / kSums;
constexpr int kHalf = kPixels / 2;
// A warp's store, four taps of eight output maps, covers all 32 banks.
constexpr int kPitch = kOuts + 8;
constexpr int kThreads = 128;
static_assert(kThreads == kAcross * (kOuts / kSums),
              "each thread computes kSums x kSums outputs");
static_assert(kThreads == kPixels, "each thread loads the values of one pixel");
static_assert(kOuts * kDepth == kThreads * 4 && kDepth == 8,
              "each thread loads four weights");

template <int kSize, int kWidth>
__global__ void __launch_bounds__(kThreads)
    convlayer_pipelined(const float* __restrict__ input,
                        const float* __restrict__ weights, float* __restrict__ output,
                        int n, int c_in, int c_out)
{
    constexpr int kHalo = kSize / 2;
    constexpr int kTaps = kSize * kSize;
    __shared__ alignas(16) float a[kStages][kDepth][kPitch];
    __shared__ alignas(16) float b[kStages][kDepth][kPixels];
    const int plane = n * n, depth = c_in * kTaps;
    const int first_out = blockIdx.y * kOuts, first_pixel = blockIdx.x * kPixels;
    const int line = threadIdx.x / kAcross * kSums, quad = threadIdx.x % kAcross * 4;
    const int pixel = first_pixel + threadIdx.x;
    const int row = pixel / n - kHalo, col = pixel % n - kHalo;
    const int a_out = threadIdx.x / 4, a_k = threadIdx.x % 4;

    const auto fetch = [&](int tile) {
        const int stage = tile % kStages, k0 = tile * kDepth;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int out = a_out + i / 2 * (kOuts / 2), k = a_k + i % 2 * 4;
            const bool inside = first_out + out < c_out && k0 + k < depth;
            const size_t at = static_cast<size_t>(first_out + out) * depth + k0 + k;
            copy_async<1>(&a[stage][k][out], weights + (inside ? at : 0), inside);
        }
#pragma unroll
        for (int k = 0; k < kDepth; ++k) {
            const int map = (k0 + k) / kTaps, tap = (k0 + k) % kTaps;
            const int r = row + tap / kSize, c = col + tap % kSize;
            const bool inside =
                map < c_in && pixel < plane && r >= 0 && r < n && c >= 0 && c < n;
            const size_t at = static_cast<size_t>(map) * plane + r * n + c;
            copy_async<1>(&b[stage][k][threadIdx.x], input + (inside ? at : 0), inside);
        }
    };

    float sum[kSums][kSums] = {};
    const int tiles = (depth + kDepth - 1) / kDepth;
    for (int tile = 0; tile < kStages - 1; ++tile) {
        if (tile < tiles) fetch(tile);
        close_group();
    }
    for (int tile = 0; tile < tiles; ++tile) {
        wait_for_groups<kStages - 2>();
        // This tile has arrived, and all reads of the one replaced next are done.
        __syncthreads();
        if (tile + kStages - 1 < tiles) fetch(tile + kStages - 1);
        close_group();
        const int stage = tile % kStages;
#pragma unroll
        for (int k = 0; k < kDepth; ++k) {
            float left[kSums], above[kSums];
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                *reinterpret_cast<float4*>(left + half * 4) =
                    *reinterpret_cast<const float4*>(&a[stage][k][line + half * 4]);
                *reinterpret_cast<float4*>(above + half * 4) =
                    *reinterpret_cast<const float4*>(&b[stage][k][half * kHalf + quad]);
            }
#pragma unroll
            for (int i = 0; i < kSums; ++i) {
#pragma unroll
                for (int j = 0; j < kSums; ++j) {
                    sum[i][j] += left[i] * above[j];
                }
            }
        }
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
