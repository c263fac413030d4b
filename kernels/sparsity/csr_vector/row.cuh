// The product of a CSR row and a vector by a group of lanes, in quads of four elements.
#pragma once

constexpr unsigned kAllLanes = 0xffffffffu;

// Computes y[row] for the row of this thread's group of kLanes lanes. All threads call.
template <int kLanes, int kThreads>
__device__ __forceinline__ void sum_row(const int* __restrict__ offsets,
                                        const int* __restrict__ columns,
                                        const float* __restrict__ values,
                                        const float* __restrict__ x,
                                        float* __restrict__ y, int m)
{
    static_assert(kLanes >= 4 && 32 % kLanes == 0, "whole groups in a warp");
    const int row = blockIdx.x * (kThreads / kLanes) + threadIdx.x / kLanes;
    const int lane = threadIdx.x % kLanes;
    const int begin = row < m ? offsets[row] : 0, end = row < m ? offsets[row + 1] : 0;
    const int first = min((begin + 3) & ~3, end), last = max(end & ~3, first);
    float sum = 0.0f;
    if (begin + lane < first) sum = values[begin + lane] * x[columns[begin + lane]];
    for (int i = first + 4 * lane; i < last; i += 4 * kLanes) {
        const int4 at = *reinterpret_cast<const int4*>(columns + i);
        const float4 value = *reinterpret_cast<const float4*>(values + i);
        sum += value.x * x[at.x] + value.y * x[at.y] + value.z * x[at.z] +
               value.w * x[at.w];
    }
    if (last + lane < end) sum += values[last + lane] * x[columns[last + lane]];
    for (int offset = kLanes / 2; offset > 0; offset /= 2)
        sum += __shfl_down_sync(kAllLanes, sum, offset, kLanes);
    if (lane == 0 && row < m) y[row] = sum;
}
