// Idea: let the inverse transforms run the same instructions as the forward ones.
// From the rung before: a loop, so that the code fits the instruction cache. An inverse
// transform is a forward one with real and imaginary parts swapped before and after;
// the tile is transposed both times.
// Requires: zeros outside the image; a block of kWarps x 32 threads.
#include "tiles.cuh"

constexpr int kWarps = 4;   // per block
constexpr int kBlocks = 5;  // per SM

template <int K>
__global__ void __launch_bounds__(kWarps* kEdge, kBlocks) fft_conv2d_one_transform(
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
#pragma unroll 1
    for (int back = 0; back < 2; ++back) {
        fft32<-1>(v);
#pragma unroll
        for (int i = 0; i < kEdge; ++i) tile[i * kPitch + lane] = v[i];
        __syncwarp();  // the whole tile is stored
#pragma unroll
        for (int i = 0; i < kEdge; ++i) v[i] = tile[lane * kPitch + i];
        __syncwarp();
        fft32<-1>(v);
        if (back == 0) {
#pragma unroll
            for (int x = 0; x < kEdge; ++x) {
                const float2 factor = spectrum[x * kEdge + lane];
                v[x] = {fmaf(v[x].y, factor.x, v[x].x * factor.y),
                        fmaf(-v[x].y, factor.y, v[x].x * factor.x)};
            }
        }
    }
    if (lane < kKept && col < cols) {
#pragma unroll
        for (int y = 0; y < kKept; ++y) v[y] = {v[y].y, v[y].x};
        store_columns<K>(v, result, image, weights, rows, cols, row, col);
    }
}
