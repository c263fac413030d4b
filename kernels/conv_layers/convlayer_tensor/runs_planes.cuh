// The padded maps of the rung runs, and the launch that makes halves of pixels.
#pragma once

#include "../../common/hopper/dependent.cuh"
#include "taps.cuh"

constexpr int kClearedEach = 8;  // floats that a thread clears

// A plane: the halves of eight maps, a piece for each pixel, with a column of zeros
// after each row, which is also the one before the next row, and rows of zeros above
// and below. The piece of a pixel's first tap is one row and one column before its own.
struct Plane {
    int n;

    __device__ __forceinline__ int pitch() const { return n + 1; }
    // The place in the map of a piece, or -1 for a zero.
    __device__ __forceinline__ int place(int piece) const
    {
        const int y = piece / pitch() - 1;
        const int x = piece % pitch() - 1;
        return x >= 0 && y >= 0 && y < n ? y * n + x : -1;
    }
    // The place of the pixel whose first tap a piece is, or -1 for none.
    __device__ __forceinline__ int place_of_first_tap(int piece) const
    {
        return place(piece + pitch() + 1);
    }
};

// Planes of all images, by step of 16 input maps, part and eight of these maps. Blocks
// after the first `plane_blocks` clear the output.
template <int kParts, int kBlock>
__global__ void __launch_bounds__(kBlock)
    convlayer_to_planes(const float* __restrict__ input, Eight* __restrict__ planes,
                        float* __restrict__ output, int n, int c_in, int c_out,
                        int images, int pieces, int plane_blocks)
{
    start_next_launch();
    const int map = n * n;
    if (blockIdx.x >= plane_blocks) {
        const size_t count = static_cast<size_t>(map) * c_out * images;
        const size_t first =
            static_cast<size_t>(blockIdx.x - plane_blocks) * (kBlock * kClearedEach);
#pragma unroll
        for (int j = 0; j < kClearedEach; ++j) {
            const size_t at = first + j * kBlock + threadIdx.x;
            if (at < count) output[at] = 0.0f;
        }
        return;
    }
    const int eights = eights_of(c_in);
    const int across = (pieces + kBlock - 1) / kBlock;
    const int piece = blockIdx.x % across * kBlock + threadIdx.x;
    if (piece >= pieces) return;
    const int eight = blockIdx.x / across % eights;
    const size_t image = blockIdx.x / across / eights;
    const int place = Plane{n}.place(piece);
    const float* from = input + (image * c_in + eight * 8) * map + place;
    float value[8];
#pragma unroll
    for (int m = 0; m < 8; ++m) {
        const bool inside = place >= 0 && eight * 8 + m < c_in;
        value[m] = inside ? from[m * static_cast<size_t>(map)] : 0.0f;
    }
    Eight made[kParts];
    make_eights<kParts>(made, value);
    const size_t step = image * (eights / kEights) + eight / kEights;
    const size_t plane = step * (kParts * kEights) + eight % kEights;
#pragma unroll
    for (int p = 0; p < kParts; ++p) {
        planes[(plane + kEights * p) * pieces + piece] = made[p];
    }
}
