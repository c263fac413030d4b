// After NVIDIA/cccl (cub/examples/block, libcudacxx/examples): collectives from its
// headers.
#ifndef FAULT
#define FAULT 0
#endif
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/warp/warp_reduce.cuh>

// Two scans in the same shared memory, which need a barrier between them.
extern "C" __global__ void two_scans(const int *x, int *sums, int *most) {
    using Scan = cub::BlockScan<int, 64, cub::BLOCK_SCAN_WARP_SCANS>;
    __shared__ typename Scan::TempStorage temp;
    int v = x[threadIdx.x], sum, top;
    Scan(temp).ExclusiveSum(v, sum);
#if FAULT != 1
    __syncthreads();
#endif
    Scan(temp).InclusiveScan(v, top, cub::Max());
    sums[threadIdx.x] = sum;
    most[threadIdx.x] = top;
}

extern "C" __global__ void sort_pairs(unsigned *keys, int *vals) {
    using Sort = cub::BlockRadixSort<unsigned, 64, 2, int>;
    __shared__ typename Sort::TempStorage temp;
    unsigned k[2] = {keys[2 * threadIdx.x], keys[2 * threadIdx.x + 1]};
    int v[2] = {vals[2 * threadIdx.x], vals[2 * threadIdx.x + 1]};
    Sort(temp).Sort(k, v, 0, 12);
    for (int i = 0; i < 2; ++i) {
        keys[2 * threadIdx.x + i] = k[i];
        vals[2 * threadIdx.x + i] = v[i];
    }
}

extern "C" __global__ void segment_sums(const float *x, const int *head, float *out) {
    using Reduce = cub::WarpReduce<float>;
    __shared__ typename Reduce::TempStorage temp[2];
    int t = threadIdx.x;
    float sum = Reduce(temp[t / 32]).HeadSegmentedSum(x[t], head[t]);
    if (head[t] || t % 32 == 0) out[t] = sum;
}
