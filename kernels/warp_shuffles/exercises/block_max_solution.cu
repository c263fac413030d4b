// The largest of the block's floats: each warp uses shuffles, then the first warp
// combines the warps' results.
constexpr int kThreads = 256;
constexpr int kWarp = 32;
constexpr int kWarps = kThreads / kWarp;
constexpr unsigned kAllLanes = 0xffffffffu;
constexpr float kLowest = -3.4e38f;  // below every input

__device__ float warp_max(float value)
{
    for (int offset = kWarp / 2; offset > 0; offset /= 2) {
        value = fmaxf(value, __shfl_down_sync(kAllLanes, value, offset));
    }
    return value;
}

__global__ void block_max(
    const float* __restrict__ source, float* __restrict__ maxima, int n)
{
    __shared__ float largest[kWarps];
    const int t = threadIdx.x;
    const int lane = t % kWarp;
    const int warp = t / kWarp;
    const int i = blockIdx.x * kThreads + t;
    float value = warp_max(i < n ? source[i] : kLowest);
    if (lane == 0) {
        largest[warp] = value;
    }
    __syncthreads();  // every warp has stored its result before the first warp reads
    if (warp == 0) {
        value = warp_max(lane < kWarps ? largest[lane] : kLowest);
        if (lane == 0) {
            maxima[blockIdx.x] = value;
        }
    }
}
