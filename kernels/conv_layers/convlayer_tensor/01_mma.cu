// Idea: an implicit matrix product: all nine taps multiply the same pixels, shifted.
// From the rung before: this is the first rung. Three products of halves replace one of
// floats. A block computes 8 x 8 pixels of 64 output maps. It loads 16 input maps at a
// time, and the 10 x 10 pixels of each serve all nine taps.
// Requires: sm_80; blocks of kThreads threads; a grid of (tiles of pixels, groups of
// output maps, images). kParts is 2 for three products of halves, 1 for one.
#include "../../common/mma.cuh"
#include "../../common/warp.cuh"
#include "halves.cuh"

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarp;
constexpr int kOuts = 16 * kWarps;
constexpr int kDepth = 16;  // input maps of a step
constexpr int kTaps = 9;
constexpr int kSide = 8;
constexpr int kHalo = kSide + 2;
constexpr int kPixels = kHalo * kHalo;
// Pitches without bank conflicts: a warp reads the weights of 8 output maps x 4 input
// maps, and the halves of 8 pixels x 4 pairs of maps, from 32 banks.
constexpr int kWeightPitch = kDepth * kTaps + 4;
constexpr int kPixelPitch = kDepth / 2 + 4;

// A lane with lane % 4 = t multiplies input maps t, t + 4, t + 8 and t + 12 of 16, so
// pair p of a pixel holds map p / 4 * 8 + p % 4 and the map four after it.
template <int kParts>
__global__ void __launch_bounds__(kThreads)
    convlayer_mma(const float* __restrict__ input, const float* __restrict__ weights,
                  float* __restrict__ output, int n, int c_in, int c_out)
{
    __shared__ float taps[kOuts * kWeightPitch];
    __shared__ unsigned pixels[kParts][kPixels * kPixelPitch];
    const int lane = threadIdx.x % kWarp;
    const int group = lane / 4;
    const int member = lane % 4;
    const int across = (n + kSide - 1) / kSide;
    const int x0 = blockIdx.x % across * kSide;
    const int y0 = blockIdx.x / across * kSide;
    const int first_out = blockIdx.y * kOuts;
    const size_t map = static_cast<size_t>(n) * n;
    input += blockIdx.z * map * c_in;
    output += blockIdx.z * map * c_out;
    float total[kSide][4] = {};
    float crossed[kSide][4] = {};  // products of a high and a low part
    for (int c = 0; c < c_in; c += kDepth) {
        __syncthreads();  // all warps have read the previous maps
        for (int i = threadIdx.x; i < kOuts * kDepth * kTaps; i += kThreads) {
            const int out = i / (kDepth * kTaps);
            const int at = i % (kDepth * kTaps);
            const bool inside =
                first_out + out < c_out && c * kTaps + at < c_in * kTaps;
            const size_t row = static_cast<size_t>(first_out + out) * c_in + c;
            taps[out * kWeightPitch + at] = inside ? weights[row * kTaps + at] : 0.0f;
        }
        for (int i = threadIdx.x; i < kPixels * kDepth / 2; i += kThreads) {
            const int pair = i / kPixels;
            const int at = i % kPixels;
            const int x = x0 - 1 + at % kHalo;
            const int y = y0 - 1 + at / kHalo;
            const int in = c + pair / 4 * 8 + pair % 4;
            const bool inside = x >= 0 && x < n && y >= 0 && y < n;
            const float* from = input + in * map + y * n + x;
            unsigned parts[kParts];
            split_pair<kParts>(parts, inside && in < c_in ? from[0] : 0.0f,
                               inside && in + 4 < c_in ? from[4 * map] : 0.0f);
#pragma unroll
            for (int p = 0; p < kParts; ++p) {
                pixels[p][at * kPixelPitch + pair] = parts[p];
            }
        }
        __syncthreads();  // all taps and pixels of this step are stored

        // Tensor cores truncate sums, so they only add up the products of one step.
        float part[kSide][4] = {};
        const int out = threadIdx.x / kWarp * 16 + group;
#pragma unroll
        for (int tap = 0; tap < kTaps; ++tap) {
            unsigned a[kParts][4];
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const float* from = taps + (out + j % 2 * 8) * kWeightPitch +
                                    (j / 2 * 8 + member) * kTaps + tap;
                unsigned parts[kParts];
                split_pair<kParts>(parts, from[0], from[4 * kTaps]);
#pragma unroll
                for (int p = 0; p < kParts; ++p) a[p][j] = parts[p];
            }
#pragma unroll
            for (int y = 0; y < kSide; ++y) {
                const int at = (y + tap / 3) * kHalo + group + tap % 3;
                unsigned b[kParts][2];
#pragma unroll
                for (int p = 0; p < kParts; ++p) {
                    b[p][0] = pixels[p][at * kPixelPitch + member];
                    b[p][1] = pixels[p][at * kPixelPitch + member + 4];
                }
                mma_f16(part[y], a[0], b[0][0], b[0][1]);
                if constexpr (kParts == 2) {
                    mma_f16(crossed[y], a[1], b[0][0], b[0][1]);
                    mma_f16(crossed[y], a[0], b[1][0], b[1][1]);
                }
            }
        }
#pragma unroll
        for (int y = 0; y < kSide; ++y) {
#pragma unroll
            for (int j = 0; j < 4; ++j) total[y][j] += part[y][j];
        }
    }
#pragma unroll
    for (int y = 0; y < kSide; ++y) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int out = first_out + threadIdx.x / kWarp * 16 + group + j / 2 * 8;
            const int x = x0 + member * 2 + j % 2;
            if (out < c_out && x < n && y0 + y < n) {
                output[out * map + (y0 + y) * n + x] =
                    total[y][j] + crossed[y][j] / kLowScale;
            }
        }
    }
}
