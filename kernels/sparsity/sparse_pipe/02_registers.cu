// Idea: A in registers, so the tensor core need not read it from shared memory.
// From the rung before: each lane loads its values once from the swizzled tile.
// Requires: blocks of kThreads threads; shared memory for Tiles; sm_90a.
#include "pipe.cuh"

extern "C" __global__ void __launch_bounds__(kThreads, 1)
    sparse_pipe_registers(const __grid_constant__ TensorMap values,
                          const unsigned* __restrict__ metadata,
                          const __grid_constant__ TensorMap B, float* __restrict__ C,
                          int steps)
{
    unsigned held[2][4];
    bool loaded = false;
    repeat_products(
        values, metadata, B, C, steps,
        [&](auto& d, const Half* a, Descriptor b, unsigned e, bool more) {
            if (!loaded) {
                const int lane = threadIdx.x % 32, warp = threadIdx.x % 128 / 32;
                for (int i = 0; i < 8; ++i) {  // bits of i: 32 of k, piece, row + 8
                    const int row = warp * 16 + lane / 4 + i % 2 * 8;
                    const int piece = (i / 4 * 2 + i / 2 % 2) ^ row / 2 % 4;
                    held[i / 4][i % 4] = reinterpret_cast<const unsigned*>(
                        a)[row * 16 + piece * 4 + lane % 4];
                }
                loaded = true;
                wgmma_fence();
            }
            wgmma_sparse_f16_rows_of_n<0>(d, held[0], b, e, more);
            wgmma_sparse_f16_rows_of_n<1>(d, held[1], b + 256, e, true);
        });
}
