// Idea: after its own square, the block loads the whole halo in one more, dense pass.
// From the rung before: two passes instead of four; the second numbers the pixels below
// and to the right consecutively, so few lanes idle.
// Requires: a block of kTile x kTile threads; a halo of no more pixels than that.
#include "border.cuh"

constexpr int kTile = 32;

template <int kDown, int kAcross, Border kBorder>
__global__ void __launch_bounds__(kTile * kTile) conv2d_halo_second_pass(
    const float* __restrict__ image, const Filter<kDown, kAcross> parameter,
    float* __restrict__ result, int rows, int cols)
{
    const Filter<kDown, kAcross> filter = weights(parameter);
    constexpr int kHigh = kTile + kDown - 1, kWide = kTile + kAcross - 1;
    constexpr int kBelow = (kDown - 1) * kWide, kRight = kTile * (kAcross - 1);
    static_assert(
        kBelow + kRight <= kTile * kTile, "one step takes a pixel per thread");
    __shared__ float tile[kHigh][kWide];
    const int first_row = blockIdx.y * kTile - kDown / 2;
    const int first_col = blockIdx.x * kTile - kAcross / 2;
    tile[threadIdx.y][threadIdx.x] = pixel<kBorder>(
        image, first_row + threadIdx.y, first_col + threadIdx.x, rows, cols);
    // First the whole rows below the square, then the short row ends to its right.
    const int rank = threadIdx.y * kTile + threadIdx.x;
    if (rank < kBelow + kRight) {
        constexpr int kEnd = kAcross > 1 ? kAcross - 1 : 1;
        const int y = rank < kBelow ? kTile + rank / kWide : (rank - kBelow) / kEnd;
        const int x = rank < kBelow ? rank % kWide : kTile + (rank - kBelow) % kEnd;
        tile[y][x] = pixel<kBorder>(image, first_row + y, first_col + x, rows, cols);
    }
    __syncthreads();  // tile and halo are loaded before any thread reads them

    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < kDown; ++i) {
#pragma unroll
        for (int j = 0; j < kAcross; ++j) {
            sum += filter.at[i][j] * tile[threadIdx.y + i][threadIdx.x + j];
        }
    }
    const int row = blockIdx.y * kTile + threadIdx.y,
              col = blockIdx.x * kTile + threadIdx.x;
    if (row < rows && col < cols) {
        result[static_cast<size_t>(row) * cols + col] = sum;
    }
}
