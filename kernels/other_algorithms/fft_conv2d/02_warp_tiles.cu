// Idea: a warp convolves a pair of tiles by Fourier transforms in registers.
// From the rung before: four passes of transforms and one product of spectra instead of
// K x K multiply-adds per output; exchanges through shared memory.
// Requires: zeros outside the image; a block of kWarps x 32 threads.
#include "tiles.cuh"

constexpr int kWarps = 4;   // per block
constexpr int kBlocks = 5;  // per SM

template <int K>
__global__ void __launch_bounds__(kWarps* kEdge, kBlocks) fft_conv2d_warp_tiles(
    const float* __restrict__ image, const float* __restrict__ weights,
    const float2* __restrict__ spectrum, float* __restrict__ result, int rows, int cols)
{
    constexpr int kKept = kEdge - K + 1;  // rows and columns of outputs per tile
    __shared__ float2 tiles[kWarps][kEdge * kPitch];
    const int lane = threadIdx.x % kEdge, warp = threadIdx.x / kEdge;
    float2* const tile = tiles[warp];
    const int row = blockIdx.y * 2 * kKept;
    const int left = (blockIdx.x * kWarps + warp) * kKept, col = left + lane;
    if (left >= cols) {
        return;
    }
    float2 v[kEdge];
    load_columns<kKept>(v, image, rows, cols, row - K / 2, left - K / 2);
    fft32<-1>(v);
#pragma unroll
    for (int y = 0; y < kEdge; ++y) tile[y * kPitch + lane] = v[y];
    __syncwarp();
#pragma unroll
    for (int x = 0; x < kEdge; ++x) v[x] = tile[lane * kPitch + x];
    fft32<-1>(v);
#pragma unroll
    for (int x = 0; x < kEdge; ++x) {
        const float2 factor = spectrum[x * kEdge + lane];
        v[x] = {fmaf(-v[x].y, factor.y, v[x].x * factor.x),
                fmaf(v[x].y, factor.x, v[x].x * factor.y)};
    }
    fft32<1>(v);
    // Each lane has read only its own row, so it may overwrite that row.
#pragma unroll
    for (int x = 0; x < kKept; ++x) tile[lane * kPitch + x] = v[x];
    __syncwarp();
    if (lane >= kKept || col >= cols) {
        return;
    }
#pragma unroll
    for (int y = 0; y < kEdge; ++y) v[y] = tile[y * kPitch + lane];
    fft32<1>(v);
    store_columns<K>(v, result, image, weights, rows, cols, row, col);
}
