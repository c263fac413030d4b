// A transpose by tensor maps: tiles of 32 x 32 floats in and out, both with a swizzle
// of 128 bytes. A column's 32 elements lie in eight banks; without the swizzle, in one.
#include "ptx.cuh"

constexpr int N = 32;

// Where element (row, column) of a swizzled tile lies.
__device__ int place(int row, int column) {
    return row * N + ((column / 4 ^ row % 8) * 4 + column % 4);
}

extern "C" __global__ void transpose(const __grid_constant__ TensorMap a,
                                     const __grid_constant__ TensorMap b) {
    __shared__ alignas(1024) float in[N * N], out[N * N];
    __shared__ Word full;
    int t = threadIdx.x;
    if (t == 0) {
        init(&full, 1);
        fence_init();
    }
    __syncthreads();
    if (t == 0) {
        expect(&full, sizeof(in));
        load(in, a, blockIdx.x * N, blockIdx.y * N, &full);
    }
    wait(&full, 0);
    for (int row = t / N; row < N; row += blockDim.x / N)
        out[place(row, t % N)] = in[place(t % N, row)];
    fence_proxy();
    __syncthreads();
    if (t == 0) {
        store(b, blockIdx.y * N, blockIdx.x * N, out);
        commit();
        wait_reads();
    }
}
