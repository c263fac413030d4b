// Idea: two warpgroups only multiply, 64 x 256 sums each, and reuse the same tiles.
// From the rung before: this is the first rung.
// Requires: sm_90a; blocks of kThreads threads; shared memory for Tiles; tensor maps of
// A, boxes of kRows rows, and of B, of kCols rows, swizzled by 128 bytes.
#include "../pipe.cuh"

__global__ void __launch_bounds__(kThreads, 1)
    tensor_bf16(const __grid_constant__ TensorMap A,
                const __grid_constant__ TensorMap B, float* __restrict__ C,
                int steps)
{
    repeat_products(A, B, C, steps, [](auto& d, Descriptor a, Descriptor b, bool more) {
        wgmma_bf16(d, a, b, more);
    });
}
