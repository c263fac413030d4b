// Exhibit. Source: FurtherAI's repository CUDA_Conv2d.
// 32 x 32 threads load a tile of 34 x 34 in steps of 32. The number of steps is
// computed as 34 / 32, which is 1, not 2: the last two rows and columns of the tile,
// the far side of the halo, are never loaded.
constexpr int kBlock = 32, kKernel = 3, kTile = kBlock + kKernel - 1;

extern "C" __global__ void convolve(
    const float* __restrict__ in, const float* __restrict__ filter,
    float* __restrict__ out, int rows, int cols)
{
    __shared__ float tile[kTile][kTile];
    for (int down = 0; down < kTile / kBlock; ++down) {
        for (int right = 0; right < kTile / kBlock; ++right) {
            const int ty = threadIdx.y + down * kBlock,
                      tx = threadIdx.x + right * kBlock;
            if (ty < kTile && tx < kTile) {
                const int y = blockIdx.y * kBlock + ty - kKernel / 2,
                          x = blockIdx.x * kBlock + tx - kKernel / 2;
                tile[ty][tx] =
                    y >= 0 && y < rows && x >= 0 && x < cols ? in[y * cols + x] : 0.0f;
            }
        }
    }
    __syncthreads();  // the tile is stored before any thread reads from it
    const int y = blockIdx.y * kBlock + threadIdx.y,
              x = blockIdx.x * kBlock + threadIdx.x;
    if (y < rows && x < cols) {
        float sum = 0.0f;
        for (int i = 0; i < kKernel; ++i) {
            for (int j = 0; j < kKernel; ++j) {
                sum += tile[threadIdx.y + i][threadIdx.x + j] * filter[i * kKernel + j];
            }
        }
        out[y * cols + x] = sum;
    }
}
