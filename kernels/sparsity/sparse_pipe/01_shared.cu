// Idea: two warpgroups only multiply; A and B are in shared memory.
// From the rung before: the first rung.
// Requires: blocks of kThreads threads; shared memory for Tiles; sm_90a.
#include "pipe.cuh"

extern "C" __global__ void __launch_bounds__(kThreads, 1)
    sparse_pipe_shared(const __grid_constant__ TensorMap values,
                       const unsigned* __restrict__ metadata,
                       const __grid_constant__ TensorMap B, float* __restrict__ C,
                       int steps)
{
    repeat_products(values, metadata, B, C, steps,
                    [](auto& d, const Half* a, Descriptor b, unsigned e, bool more) {
                        const Descriptor at = describe_stored_rows(a);
                        wgmma_sparse_f16_rows_of_n<0>(d, at, b, e, more);
                        wgmma_sparse_f16_rows_of_n<1>(d, at + 2, b + 256, e, true);
                    });
}
