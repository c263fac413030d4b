// Idea: let the copy engine (TMA) load and store the tile.
// From the rung before: one thread starts two loads and two stores for the
// block; the threads access only shared memory, where the tile is not swizzled.
// Requires: a block of kTileThreads threads; both arrays aligned to 16 bytes; rows and
// cols multiples of 4.
#include "../../common/hopper/tma.cuh"
#include "tile.cuh"

__global__ void __launch_bounds__(kTileThreads)
    transpose_tma(const __grid_constant__ TensorMap source,
                 const __grid_constant__ TensorMap target)
{
    __shared__ __align__(1024) float4 tile[2 * kBox];
    __shared__ Barrier full;
    const int row = blockIdx.x * kTile, col = blockIdx.y * kTile;
    if (threadIdx.x == 0) {
        mbarrier_init(&full, 1);
        fence_mbarrier_init();
        mbarrier_arrive_expect(&full, kBytes);
        tma_load(tile, source, col, row, &full);
        tma_load(tile + kBox, source, col + kTile / 2, row, &full);
    }
    __syncthreads();  // the barrier is initialised before any thread waits for it

    const Square square = in_rows(threadIdx.x);
    float4 part[4];
    mbarrier_wait(&full, 0);
    square.read<false>(part, tile);
    __syncthreads();  // every square is in registers before any is overwritten
    square.write<false>(tile, part);
    fence_proxy_async();
    __syncthreads();  // the copy engine sees the whole transposed tile
    if (threadIdx.x == 0) {
        tma_store(target, row, col, tile);
        tma_store(target, row + kTile / 2, col, tile + kBox);
        bulk_commit();
        bulk_wait_read<0>();  // the tile is read before the block ends
    }
}
