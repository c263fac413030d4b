// Exhibit. Source: FurtherAI's repository CUDA_Conv2d, conv2d_shfl.cu.
// The published shuffle, on a tile that is complete. Lane 31 needs two pixels that no
// lane holds, and loads them as a pair: always the same pair. Then a shuffle overwrites
// the pixels that it loaded.
constexpr int kBlock = 32, kKernel = 3, kWide = kBlock + kKernel - 1;
constexpr unsigned kAll = 0xffffffffu;

extern "C" __global__ void convolve(const float* __restrict__ in,
                                    const float* __restrict__ filter,
                                    float* __restrict__ out, int rows, int cols)
{
    __shared__ __align__(8) float tile[kWide * kWide];
    for (int i = threadIdx.y * kBlock + threadIdx.x; i < kWide * kWide;
         i += kBlock * kBlock) {
        const int r = static_cast<int>(blockIdx.y) * kBlock + i / kWide - kKernel / 2,
                  c = static_cast<int>(blockIdx.x) * kBlock + i % kWide - kKernel / 2;
        tile[i] = r >= 0 && r < rows && c >= 0 && c < cols ? in[r * cols + c] : 0.0f;
    }
    __syncthreads();

    float sum = 0.0f;
    float2 next = {};
    for (int i = 0; i < kKernel; ++i) {
        const float* const row = tile + (threadIdx.y + i) * kWide;
        float value = row[threadIdx.x];
        if (threadIdx.x == 31) next = reinterpret_cast<const float2*>(tile)[32];
        sum += value * filter[i * kKernel];
        value = __shfl_down_sync(kAll, value, 1);
        next.x = __shfl_down_sync(kAll, value, 1);
        for (int j = 1; j < kKernel; ++j) {
            sum += value * filter[i * kKernel + j];
            value = next.x;
        }
    }
    const int y = blockIdx.y * kBlock + threadIdx.y,
              x = blockIdx.x * kBlock + threadIdx.x;
    if (y < rows && x < cols) out[y * cols + x] = sum;
}
