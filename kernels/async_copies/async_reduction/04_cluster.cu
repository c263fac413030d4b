// Idea: the blocks of a cluster add up in the shared memory of the first of them.
// From the rung before: clusters of kBlocks blocks; a store to another block's shared
// memory, once that block has begun, and a barrier of the cluster; an eighth of the
// sums in global memory.
// Requires: source aligned to 16 bytes; blocks of kThreads threads; one block per
// kChunk floats, a multiple of kBlocks; then one block for the sums, launched with pdl.
#include "../../common/hopper/cluster.cuh"
#include "chunk_sum.cuh"

constexpr int kBlocks = 8;  // of a cluster

__global__ void __cluster_dims__(kBlocks) __launch_bounds__(kThreads) sum_cluster(
    const float* __restrict__ source, float* __restrict__ sums, size_t n)
{
    __shared__ float parts[kBlocks];
    start_next_launch();
    cluster_arrive();  // this block has begun
    const float sum = block_sum(thread_sum(source, n));
    cluster_wait();  // so has the first one, and it may be stored to
    if (threadIdx.x == 0) {
        at_rank(parts, 0)[cluster_rank()] = sum;
    }
    cluster_sync();  // all blocks' sums are in the first block's shared memory
    if (cluster_rank() == 0 && threadIdx.x == 0) {
        float all = 0.0f;
        for (int block = 0; block < kBlocks; ++block) {
            all += parts[block];
        }
        sums[blockIdx.x / kBlocks] = all;
    }
}
