// Idea: persistent blocks, in which a dedicated warp loads tiles ahead of use.
// From the rung before: a ring of kStages tiles in a loop; the thread that stores a
// tile returns its slot to the producer when the engine has read it.
// Requires: a block of kTileThreads + 32 threads and kStages * kBytes of shared memory;
// both arrays aligned to 16 bytes; rows and cols multiples of 4.
#include "../../common/hopper/tma.cuh"
#include "tile.cuh"

// A barrier for the threads that transpose, without the producer.
__device__ __forceinline__ void sync_consumers()
{
    asm volatile("bar.sync 1, %0;" ::"n"(kTileThreads) : "memory");
}

template <int kStages>
__global__ void __launch_bounds__(kTileThreads + 32)
    transpose_persistent(const __grid_constant__ TensorMap source,
                         const __grid_constant__ TensorMap target, int rows, int cols)
{
    extern __shared__ __align__(1024) float4 tiles[];
    __shared__ Barrier full[kStages], empty[kStages];
    const int down = (rows + kTile - 1) / kTile, across = (cols + kTile - 1) / kTile;
    const int step = gridDim.x;
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < kStages; ++stage) {
            mbarrier_init(full + stage, 1);
            mbarrier_init(empty + stage, 1);
        }
        fence_mbarrier_init();
    }
    __syncthreads();  // the barriers are initialised before any thread waits for them

    int stage = 0, parity = 0;
    const auto next = [&] {
        stage = stage + 1 == kStages ? 0 : stage + 1;
        parity ^= stage == 0;
    };
    if (threadIdx.x >= kTileThreads) {
        if (threadIdx.x > kTileThreads) return;
        for (int i = blockIdx.x; i < down * across; i += step, next()) {
            const int row = i % down * kTile, col = i / down * kTile;
            float4* tile = tiles + stage * 2 * kBox;
            mbarrier_wait(empty + stage, parity ^ 1);
            mbarrier_arrive_expect(full + stage, kBytes);
            tma_load(tile, source, col, row, full + stage);
            tma_load(tile + kBox, source, col + kTile / 2, row, full + stage);
        }
        return;
    }
    const Square square = on_diagonals(threadIdx.x);
    int before = -1;  // the previous tile's stage
    for (int i = blockIdx.x; i < down * across; i += step, next()) {
        const int row = i % down * kTile, col = i / down * kTile;
        float4* tile = tiles + stage * 2 * kBox;
        float4 part[4];
        mbarrier_wait(full + stage, parity);
        square.read<true>(part, tile);
        sync_consumers();  // every square is in registers before any is overwritten
        square.write<true>(tile, part);
        fence_proxy_async();
        sync_consumers();  // the copy engine sees the whole transposed tile
        if (threadIdx.x == 0) {
            tma_store(target, row, col, tile);
            tma_store(target, row + kTile / 2, col, tile + kBox);
            bulk_commit();
            bulk_wait_read<1>();  // the previous tile has been read
            if (before >= 0) mbarrier_arrive(empty + before);
            before = stage;
        }
    }
    if (threadIdx.x == 0) {
        bulk_wait_read<0>();  // the last tile is read before the block ends
    }
}
