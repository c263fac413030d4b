// Shared by the rungs that load float4: four neighbouring floats of a row, as one
// access of 16 bytes (kWidth = 4) or as single floats (kWidth = 1, for rows that do not
// start at multiples of 16 bytes).
#pragma once

constexpr int kOut = 4;

// Floats col to col + 3 of a row of cols floats, with zeros outside the row.
template <int kWidth>
__device__ float4 load_quad(const float* __restrict__ row, int col, int cols)
{
    float4 quad = {};
    if constexpr (kWidth == 4) {
        if (col >= 0 && col < cols) quad = *reinterpret_cast<const float4*>(row + col);
    } else if (col >= 0) {
        if (col < cols) quad.x = row[col];
        if (col + 1 < cols) quad.y = row[col + 1];
        if (col + 2 < cols) quad.z = row[col + 2];
        if (col + 3 < cols) quad.w = row[col + 3];
    }
    return quad;
}

// Stores sum[0] to sum[3] at columns col to col + 3, except past the end of the row.
template <int kWidth>
__device__ void store_quad(float* __restrict__ row, int col, int cols, const float* sum)
{
    if constexpr (kWidth == 4) {
        if (col < cols) {
            *reinterpret_cast<float4*>(row + col) = {sum[0], sum[1], sum[2], sum[3]};
        }
    } else {
        for (int o = 0; o < kOut; ++o) {
            if (col + o < cols) row[col + o] = sum[o];
        }
    }
}
