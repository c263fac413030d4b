// Rows of pixels as float4, for threads that own four or more neighbouring columns. A
// window is a thread's own columns with a halo on both sides.
#pragma once
#include "border.cuh"

constexpr int kOut = 4;

// The number of float4s that hold this many pixels.
__host__ __device__ constexpr int quads(int pixels)
{
    return (pixels + kOut - 1) / kOut;
}

// The columns of a window of kQuads float4s, kHalo of them on either side of the
// thread's own: the first column, and which float4s are inside the image. Computed
// once, not for each row; the thread's own are always inside.
template <int kQuads, int kHalo>
struct Columns {
    int first;
    bool there[kQuads];

    __device__ Columns(int own, int cols) : first(own - kHalo * kOut)
    {
#pragma unroll
        for (int q = 0; q < kQuads; ++q) {
            const bool mine = q >= kHalo && q < kQuads - kHalo;
            there[q] = mine || (first + q * kOut >= 0 && first + q * kOut < cols);
        }
    }
};

// Load a row of the image into a window, for a zero border and rows that start at
// multiples of 16 bytes. from: the window's first column in that row; in: true if the
// row is inside the image.
template <int kQuads, int kHalo>
__device__ void load_quads(
    float4 (&window)[kQuads], const float* __restrict__ from, bool in,
    const Columns<kQuads, kHalo>& columns)
{
#pragma unroll
    for (int q = 0; q < kQuads; ++q) {
        float4 quad = {};
        if (in && columns.there[q]) {
            quad = *reinterpret_cast<const float4*>(from + q * kOut);
        }
        window[q] = quad;
    }
}

// Load a row of the image into a window, for any border. kWidth = 4 requires that every
// row starts at a multiple of 16 bytes and ends with a thread's last own column; kWidth
// = 1 loads pixel by pixel.
template <Border kBorder, int kWidth, int kQuads, int kHalo>
__device__ void load_window(
    float4 (&window)[kQuads], const float* __restrict__ image, int row,
    const Columns<kQuads, kHalo>& columns, int rows, int cols)
{
    const int r = inside<kBorder>(row, rows);
    const bool in = r >= 0 && r < rows;
    const float* line = image + static_cast<ptrdiff_t>(r) * cols;
    if (kWidth == 4 &&
        (kBorder == kZero || (columns.there[0] && columns.there[kQuads - 1]))) {
        load_quads(window, line + columns.first, in, columns);
    } else {
#pragma unroll
        for (int q = 0; q < kQuads; ++q) {
            float each[kOut];
#pragma unroll
            for (int o = 0; o < kOut; ++o) {
                const int c = inside<kBorder>(columns.first + q * kOut + o, cols);
                each[o] = in && c >= 0 && c < cols ? line[c] : 0.0f;
            }
            window[q] = {each[0], each[1], each[2], each[3]};
        }
    }
}

// Store four neighbouring outputs, from column col on, to `to`. With kWidth = 4, all
// four are inside the row; with kWidth = 1, some may be outside.
template <int kWidth>
__device__ void store_quad(float* __restrict__ to, int col, int cols, const float* sum)
{
    if constexpr (kWidth == 4) {
        *reinterpret_cast<float4*>(to) = {sum[0], sum[1], sum[2], sum[3]};
    } else {
#pragma unroll
        for (int o = 0; o < kOut; ++o) {
            if (col + o < cols) {
                to[o] = sum[o];
            }
        }
    }
}
