// The sum of each element and its two neighbours, with zeros beyond the ends.
constexpr int kThreads = 128;

__global__ void smooth(const float* __restrict__ x, float* __restrict__ y, int n)
{
    __shared__ float tile[kThreads + 2];
    const int i = blockIdx.x * kThreads + threadIdx.x;
    const int t = threadIdx.x + 1;
    tile[t] = i < n ? x[i] : 0.0f;
    if (threadIdx.x == 0) tile[0] = i > 0 ? x[i - 1] : 0.0f;
    if (threadIdx.x == kThreads - 1) tile[t + 1] = i + 1 < n ? x[i + 1] : 0.0f;
    __syncthreads();  // the tile is loaded before any thread reads from it
    if (i < n) y[i] = tile[t - 1] + tile[t] + tile[t + 1];
}
