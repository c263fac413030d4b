// The maximum of each row: the kBlocks blocks of a cluster share a row.
#include "hopper/cluster.cuh"

constexpr int kThreads = 32;
constexpr int kBlocks = 4;  // per cluster

__global__ void __cluster_dims__(kBlocks) __launch_bounds__(kThreads)
    row_max(const float* x, float* y, int cols)
{
    __shared__ float parts[kBlocks];
    cluster_arrive();  // this block has started
    const int row = blockIdx.x / kBlocks;
    float most = x[row * cols];
    for (int col = cluster_rank() * kThreads + threadIdx.x; col < cols;
         col += kBlocks * kThreads) {
        most = fmaxf(most, x[row * cols + col]);
    }
    for (int offset = 16; offset > 0; offset /= 2) {
        most = fmaxf(most, __shfl_xor_sync(0xffffffff, most, offset));
    }
    cluster_wait();  // the others have started too
    if (threadIdx.x == 0) {
        parts[cluster_rank()] = most;  // TODO: block 0 of the cluster needs it
    }
    __syncthreads();  // TODO: which threads must have arrived?
    if (cluster_rank() == 0 && threadIdx.x == 0) {
        for (int block = 1; block < kBlocks; ++block) {
            most = fmaxf(most, parts[block]);
        }
        y[row] = most;
    }
}
