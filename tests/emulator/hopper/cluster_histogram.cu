// A histogram whose bins are spread over the shared memories of a cluster of two
// blocks.
#include "ptx.cuh"

constexpr int BINS = 64, SIZE = 2, PART = BINS / SIZE;

extern "C" __global__ void __cluster_dims__(SIZE, 1, 1)
cluster_histogram(const unsigned* values, unsigned* bins, int n) {
    __shared__ unsigned part[PART];
    int t = threadIdx.x, stride = gridDim.x * blockDim.x;
    for (int i = t; i < PART; i += blockDim.x) part[i] = 0;
    cluster_sync();
    for (int i = blockIdx.x * blockDim.x + t; i < n; i += stride) {
        unsigned bin = values[i] % BINS;
        add_at(at_rank(&part[bin % PART], bin / PART), 1);
    }
    cluster_sync();
    for (int i = t; i < PART; i += blockDim.x)
        atomicAdd(&bins[cluster_rank() * PART + i], part[i]);
}
