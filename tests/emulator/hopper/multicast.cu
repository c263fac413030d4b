// Two blocks of a cluster add the same tiles to different rows: each loads half of a
// tile and sends it to both.
#include "ptx.cuh"

constexpr int ROWS = 32, COLUMNS = 32, SIZE = 2, HALF = ROWS / SIZE;

extern "C" __global__ void __cluster_dims__(SIZE, 1, 1)
multicast(const __grid_constant__ TensorMap tile, const float* a, float* b) {
    __shared__ alignas(128) float shared[ROWS][COLUMNS];
    __shared__ Word full;
    int t = threadIdx.x, rank = cluster_rank();
    if (t == 0) {
        init(&full, 1);
        fence_init();
    }
    cluster_sync();
    if (t == 0) {
        expect(&full, sizeof(shared));
        load_all(shared[rank * HALF], tile, 0, rank * HALF, &full, (1 << SIZE) - 1);
    }
    wait(&full, 0);
    for (int i = t; i < ROWS * COLUMNS; i += blockDim.x)
        b[blockIdx.x * ROWS * COLUMNS + i] =
            a[blockIdx.x * ROWS * COLUMNS + i] + shared[i / COLUMNS][i % COLUMNS];
    cluster_sync();
}
