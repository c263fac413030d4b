// Idea: a warp convolves a pair of tiles by transforms, in registers, for few products.
// From the rung before: four transforms of each row or column, and one product of
// spectra, in place of K x K multiply-adds per output; exchanges in shared memory.
// Requires: zeros outside the image; a block of kWarps x 32 threads.
#include "tiles.cuh"

constexpr int kWarps = 4;   // of a block
constexpr int kBlocks = 5;  // on an SM

template <int K>
__global__ void __launch_bounds__(kWarps* kEdge, kBlocks) fft_conv2d_warp_tiles(
    const float* __restrict__ image, const float* __restrict__ weights,
    const float2* __restrict__ spectrum, float* __restrict__ result, int rows, int cols)
{
    constexpr int kKept = kEdge - K + 1;  // rows and columns of outputs of a tile
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
    // Each lane has read its own row, so it may write there.
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
