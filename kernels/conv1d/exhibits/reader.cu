// Reads the filters of each output channel and adds them up, a block for each channel,
// with every load in flight at once.
constexpr int kThreads = 128;
constexpr int kWarp = 32;
constexpr int kWidth = sizeof(float4) / sizeof(float);
constexpr unsigned kAllLanes = 0xffffffffu;

// __launch_bounds__ asks for one block per SM only, so that the compiler gives every
// load its own registers.
template <int kLoads>
__global__ void __launch_bounds__(kThreads, 1)
    read_filters(const float* __restrict__ filters, float* __restrict__ sums,
                 int length)
{
    __shared__ float partial[kThreads / kWarp];
    const float4* row = reinterpret_cast<const float4*>(
        filters + static_cast<size_t>(blockIdx.x) * length);
    float sum = 0.0f;
    for (int base = threadIdx.x; base < length / kWidth; base += kThreads * kLoads) {
        float4 four[kLoads] = {};
#pragma unroll
        for (int u = 0; u < kLoads; ++u) {
            if (base + u * kThreads < length / kWidth) {
                four[u] = row[base + u * kThreads];
            }
        }
#pragma unroll
        for (int u = 0; u < kLoads; ++u) {
            sum += (four[u].x + four[u].y) + (four[u].z + four[u].w);
        }
    }
    for (int offset = kWarp / 2; offset > 0; offset /= 2) {
        sum += __shfl_down_sync(kAllLanes, sum, offset);
    }
    if (threadIdx.x % kWarp == 0) {
        partial[threadIdx.x / kWarp] = sum;
    }
    __syncthreads();  // all warps have stored their sums before any are added
    if (threadIdx.x == 0) {
        float total = 0.0f;
        for (int warp = 0; warp < kThreads / kWarp; ++warp) {
            total += partial[warp];
        }
        sums[blockIdx.x] = total;
    }
}
