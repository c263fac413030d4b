// Shared by the rungs that convolve an image by transforms of tiles of 32 x 32 pixels.
//
// Two tiles a and b are transformed as one complex tile a + i b. The filter is real, so
// the product's inverse transform has a's result as real part, b's as imaginary part.
#pragma once
#include "../fft32.cuh"

constexpr int kEdge = 32;                 // side of a tile, and lanes of a warp
constexpr int kPitch = kEdge + 1;         // pitch of its rows in shared memory
constexpr int kBins = kEdge * kEdge;      // frequencies of a tile
constexpr int kSpectrumThreads = 256;
constexpr unsigned kAllLanes = 0xffffffffu;

// spectrum[across * 32 + down] = the sum of weights[y][x] exp(2 pi i (y down + x
// across) / 32), divided by 1024: the conjugate spectrum, because a filter that is not
// flipped is a correlation, including the scale of forward and inverse transforms.
// Needs kBins threads.
template <int K>
__global__ void __launch_bounds__(kSpectrumThreads)
    fft_conv2d_spectrum(
        const float* __restrict__ weights, float2* __restrict__ spectrum)
{
    __shared__ float2 roots[kEdge];
    if (threadIdx.x < kEdge) {
        const float angle = threadIdx.x / 16.0f;
        roots[threadIdx.x] = {cospif(angle), sinpif(angle)};
    }
    __syncthreads();
    const int bin = blockIdx.x * kSpectrumThreads + threadIdx.x;
    const int across = bin / kEdge, down = bin % kEdge;
    float2 sum = {};
#pragma unroll 1
    for (int y = 0; y < K; ++y) {
#pragma unroll
        for (int x = 0; x < K; ++x) {
            const float2 root = roots[(y * down + x * across) % kEdge];
            sum.x = fmaf(weights[y * K + x], root.x, sum.x);
            sum.y = fmaf(weights[y * K + x], root.y, sum.y);
        }
    }
    spectrum[bin] = {sum.x / kBins, sum.y / kBins};
}

// One output, term by term.
template <int K>
__device__ float term_by_term(
    const float* __restrict__ image, const float* __restrict__ weights, int rows,
    int cols, int row, int col)
{
    float sum = 0.0f;
#pragma unroll 1
    for (int i = 0; i < K * K; ++i) {
        const int y = row + i / K - K / 2, x = col + i % K - K / 2;
        const bool inside = y >= 0 && y < rows && x >= 0 && x < cols;
        const float pixel =
            inside ? image[static_cast<size_t>(y) * cols + x] : 0.0f;
        sum = fmaf(weights[i], pixel, sum);
    }
    return sum;
}

// Recomputes those of a lane's outputs that are not finite: a column of `count` from
// (row, col) on.
template <int K>
__device__ __noinline__ void mend(
    float* __restrict__ result, const float* __restrict__ image,
    const float* __restrict__ weights, int rows, int cols, int row, int col, int count)
{
#pragma unroll 1
    for (int y = row; y < min(row + count, rows); ++y) {
        float* const to = result + static_cast<size_t>(y) * cols + col;
        if (!isfinite(*to)) {
            *to = term_by_term<K>(image, weights, rows, cols, y, col);
        }
    }
}

// The element `down` rows below. The address takes one 32-bit multiply-add.
__device__ __forceinline__ const float* below(
    const float* from, int cols, unsigned down)
{
    const unsigned pitch = static_cast<unsigned>(cols) * sizeof(float);
    return reinterpret_cast<const float*>(
        reinterpret_cast<const char*>(from) + static_cast<size_t>(pitch) * down);
}

// Lane x gets column x of tile a as real parts and of tile b as imaginary parts. b
// begins kKept rows further down, so it shares kEdge - kKept rows with a. (row, left)
// is the first pixel of tile a, which may be outside the image.
template <int kKept>
__device__ __forceinline__ void load_columns(
    float2 (&v)[kEdge], const float* __restrict__ image, int rows, int cols, int row,
    int left)
{
    constexpr int kHigh = kEdge + kKept;
    const int col = left + static_cast<int>(threadIdx.x) % kEdge;
    const float* const from = image + static_cast<ptrdiff_t>(row) * cols + col;
    float pixel[kHigh];
    if (row >= 0 && row + kHigh <= rows && left >= 0 && left + kEdge <= cols) {
#pragma unroll
        for (int y = 0; y < kHigh; ++y) pixel[y] = *below(from, cols, y);
    } else {
        const bool within = col >= 0 && col < cols;
#pragma unroll
        for (int y = 0; y < kHigh; ++y) {
            const bool inside = within && row + y >= 0 && row + y < rows;
            pixel[y] = inside ? *below(from, cols, y) : 0.0f;
        }
    }
#pragma unroll
    for (int y = 0; y < kEdge; ++y) v[y] = {pixel[y], pixel[y + kKept]};
}

// Stores a lane's column of both tiles, kKept rows of each, except elements outside the
// result. Results that are not finite are recomputed: a transform spreads a NaN, or an
// overflow of its own, over both tiles.
template <int K>
__device__ __forceinline__ void store_columns(
    const float2 (&v)[kEdge], float* __restrict__ result,
    const float* __restrict__ image, const float* __restrict__ weights, int rows,
    int cols, int row, int col)
{
    constexpr int kKept = kEdge - K + 1;
    float* const to = result + static_cast<size_t>(row) * cols + col;
    const auto store = [&](int y, float value) {
        *const_cast<float*>(below(to, cols, y)) = value;
    };
    bool finite = true;
#pragma unroll
    for (int y = 0; y < kKept; ++y) {
        finite = finite && isfinite(v[y].x) && isfinite(v[y].y);
    }
    if (row + 2 * kKept <= rows) {
#pragma unroll
        for (int y = 0; y < kKept; ++y) {
            store(y, v[y].x);
            store(y + kKept, v[y].y);
        }
    } else {
#pragma unroll
        for (int y = 0; y < kKept; ++y) {
            if (row + y < rows) store(y, v[y].x);
            if (row + kKept + y < rows) store(y + kKept, v[y].y);
        }
    }
    if (!finite) {
        mend<K>(result, image, weights, rows, cols, row, col, 2 * kKept);
    }
}
