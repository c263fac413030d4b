// Shared by the rungs that skip the planes outside the volume.
#pragma once

// True if a weight is NaN or infinite: then its products with the zeros outside the
// volume are NaN.
__device__ bool is_strange(float weight)
{
    return !(fabsf(weight) <= 3.402823466e38f);
}

// Adds the products of the weights with the zeros of planes outside the volume (NaN if
// a weight is not finite, otherwise 0) to a thread's outputs: planes begin to end - 1,
// one row, `columns` columns from col on.
template <int K>
__device__ void add_outside(float* __restrict__ target,
                            const float* __restrict__ weights, int n, int begin,
                            int end, int row, int col, int columns)
{
#pragma unroll 1
    for (int z = begin; z < end && row < n; ++z) {
        if (z >= K / 2 && z + K / 2 < n) {
            continue;
        }
        float products = 0.0f;
#pragma unroll 1
        for (int dz = 0; dz < K; ++dz) {
            if (z + dz < K / 2 || z + dz >= n + K / 2) {
#pragma unroll 1
                for (int i = 0; i < K * K; ++i) {
                    products += 0.0f * weights[dz * K * K + i];
                }
            }
        }
#pragma unroll 1
        for (int x = col; x < min(col + columns, n); ++x) {
            target[(static_cast<size_t>(z) * n + row) * n + x] += products;
        }
    }
}
