// Idea: the texture unit fetches the pixels and handles the border.
// From the rung before: no tile, no barrier, no shuffle; each tap is a fetch, without a
// bounds check for the borders zero and clamp.
// Requires: the image as a texture without filtering that gives zeros or the nearest
// texel beyond its edges.
#include "border.cuh"

template <int kDown, int kAcross, Border kBorder>
__global__ void conv2d_texture(
    cudaTextureObject_t image, const Filter<kDown, kAcross> parameter,
    float* __restrict__ result, int rows, int cols)
{
    const Filter<kDown, kAcross> filter = weights(parameter);
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    const int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows || col >= cols) {
        return;
    }
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < kDown; ++i) {
#pragma unroll
        for (int j = 0; j < kAcross; ++j) {
            int r = row + i - kDown / 2, c = col + j - kAcross / 2;
            // Textures can mirror too, but at a texel's edge, not at its centre.
            if (kBorder != kZero && kBorder != kClamp) {
                r = inside<kBorder>(r, rows);
                c = inside<kBorder>(c, cols);
            }
            // The centre of the texel.
            sum += filter.at[i][j] * tex2D<float>(image, c + 0.5f, r + 0.5f);
        }
    }
    result[static_cast<size_t>(row) * cols + col] = sum;
}
