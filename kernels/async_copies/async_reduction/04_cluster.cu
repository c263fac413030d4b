// Idea: collect the sums of a cluster in its first block's shared memory.
// From the rung before: clusters of kBlocks blocks; a store to another block's shared
// memory, once that block has started, and a cluster barrier; one eighth as many sums
// in global memory.
// Requires: source aligned to 16 bytes; blocks of kThreads threads; one block per
// kChunk floats, a multiple of kBlocks; then one block for the sums, launched with pdl.
#include "../../common/hopper/cluster.cuh"
#include "chunk_sum.cuh"

constexpr int kBlocks = 8;  // per cluster

__global__ void __cluster_dims__(kBlocks) __launch_bounds__(kThreads) sum_cluster(
    const float* __restrict__ source, float* __restrict__ sums, size_t n)
{
    __shared__ float parts[kBlocks];
    start_next_launch();
    cluster_arrive();  // this block has started
    const float sum = block_sum(thread_sum(source, n));
    cluster_wait();  // the first block has started: its shared memory is valid
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
