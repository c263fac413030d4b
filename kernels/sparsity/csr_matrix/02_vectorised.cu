// Idea: a lane has four columns, and a warp reads its row's elements 32 at a time.
// From the rung before: a warp loads 32 elements at once and distributes them by
// shuffles; rows of B are read with 16-byte loads, 128 columns per warp.
// Requires: n a multiple of 4, B and C aligned to 16 bytes; blocks of kThreads threads.

constexpr int kThreads = 256;
constexpr int kWarp = 32;
constexpr unsigned kAllLanes = 0xffffffffu;

extern "C" __global__ void __launch_bounds__(kThreads)
    csr_mm_vectorised(const int* __restrict__ offsets, const int* __restrict__ columns,
                      const float* __restrict__ values, const float* __restrict__ B,
                      float* __restrict__ C, int m, int n)
{
    const int row = blockIdx.y * (kThreads / kWarp) + threadIdx.x / kWarp;
    const int lane = threadIdx.x % kWarp, col = (blockIdx.x * kWarp + lane) * 4;
    if (row >= m) return;
    const bool in = col < n;
    const float* const from = B + (in ? col : 0);
    const int end = offsets[row + 1];
    float4 sum = {};
    for (int start = offsets[row]; start < end; start += kWarp) {
        const int count = min(kWarp, end - start);
        const int my_column = lane < count ? columns[start + lane] : 0;
        const float my_value = lane < count ? values[start + lane] : 0.0f;
#pragma unroll 4
        for (int i = 0; i < count; ++i) {
            const size_t at = __shfl_sync(kAllLanes, my_column, i);
            const float value = __shfl_sync(kAllLanes, my_value, i);
            const float4 b = *reinterpret_cast<const float4*>(from + at * n);
            sum.x += value * b.x;
            sum.y += value * b.y;
            sum.z += value * b.z;
            sum.w += value * b.w;
        }
    }
    if (in) *reinterpret_cast<float4*>(C + static_cast<size_t>(row) * n + col) = sum;
}
