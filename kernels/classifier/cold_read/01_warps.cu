// Idea: read everything at once and do little else: one sum per warp, no barrier.
// From the rung before: the first rung.
// Requires: source aligned to 16 bytes; a block of kThreads threads; one block per
// kThreads / kWarp sums.
#include "../../common/warp.cuh"

constexpr int kThreads = 256;
constexpr int kLoads = 4;  // per lane, 16 bytes each
constexpr int kWidth = sizeof(float4) / sizeof(float);
constexpr int kChunk = kWarp * kLoads * kWidth;  // floats per warp

__global__ void __launch_bounds__(kThreads)
    read_warps(const float* __restrict__ source, float* __restrict__ sums, size_t n)
{
    const int lane = threadIdx.x % kWarp;
    const size_t chunk =
        static_cast<size_t>(blockIdx.x) * (kThreads / kWarp) + threadIdx.x / kWarp;
    const size_t start = chunk * kChunk;
    if (start >= n) return;
    float sum = 0.0f;
    if (start + kChunk <= n) {
        const float4* quads = reinterpret_cast<const float4*>(source + start);
        float4 value[kLoads];
#pragma unroll
        for (int u = 0; u < kLoads; ++u) {
            value[u] = quads[u * kWarp + lane];
        }
#pragma unroll
        for (int u = 0; u < kLoads; ++u) {
            sum += (value[u].x + value[u].y) + (value[u].z + value[u].w);
        }
    } else {
        for (size_t i = start + lane; i < n; i += kWarp) {
            sum += source[i];
        }
    }
    sum = warp_sum(sum);
    if (lane == 0) {
        sums[chunk] = sum;
    }
}
