// Rows of pixels in float4, for threads that own four or more neighbouring columns: windows with a halo on both sides.
#pragma once
#include "border.cuh"

constexpr int kOut = 4;

// Whole float4 that hold this many pixels.
__host__ __device__ constexpr int quads(int pixels)
{
    return (pixels + kOut - 1) / kOut;
}

// The columns of a window of kQuads float4: the first, and which float4 the image has. Asked once, and not in each row.
template <int kQuads>
struct Columns {
    int first;
    bool there[kQuads];

    __device__ Columns(int first, int cols) : first(first)
    {
#pragma unroll
        for (int q = 0; q < kQuads; ++q) {
            there[q] = first + q * kOut >= 0 && first + q * kOut < cols;
        }
    }
};

// A row of the image in a window. kWidth = 4 where every row starts at a multiple of 16 bytes, and the window at a
// multiple of four columns; kWidth = 1 loads pixel by pixel.
template <Border kBorder, int kWidth, int kQuads>
__device__ void load_window(
    float4 (&window)[kQuads], const float* __restrict__ image, int row, const Columns<kQuads>& columns, int rows,
    int cols)
{
    const int r = inside<kBorder>(row, rows);
    const bool in = r >= 0 && r < rows;
    if (kWidth == 4 && (kBorder == kZero || (columns.there[0] && columns.there[kQuads - 1]))) {
        const float* from = image + static_cast<ptrdiff_t>(r) * cols + columns.first;
#pragma unroll
        for (int q = 0; q < kQuads; ++q) {
            window[q] = in && columns.there[q] ? *reinterpret_cast<const float4*>(from + q * kOut) : float4{};
        }
    } else {
        const float* line = image + static_cast<ptrdiff_t>(in ? r : 0) * cols;
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

// Four outputs beside one another, as far as the row reaches.
template <int kWidth>
__device__ void store_quad(float* __restrict__ result, int row, int col, int cols, const float* sum)
{
    float* to = result + static_cast<size_t>(row) * cols + col;
    if constexpr (kWidth == 4) {
        if (col < cols) {
            *reinterpret_cast<float4*>(to) = {sum[0], sum[1], sum[2], sum[3]};
        }
    } else {
#pragma unroll
        for (int o = 0; o < kOut; ++o) {
            if (col + o < cols) {
                to[o] = sum[o];
            }
        }
    }
}
