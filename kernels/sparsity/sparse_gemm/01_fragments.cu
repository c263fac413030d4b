// Idea: a warp multiplies 16 sparse rows with mma.sp, on fragments from global memory.
// From the rung before: the first rung.
// Requires: m a multiple of 16, n of 8, k of 64; blocks of kThreads threads; sm_80.
#include "../../common/mma_sparse.cuh"
#include "format.cuh"

constexpr int kThreads = 128;
constexpr int kAcross = 8;  // products per warp, side by side: 64 columns

__device__ __forceinline__ unsigned pair(unsigned low, unsigned high)
{
    return low | high << 16;
}

extern "C" __global__ void __launch_bounds__(kThreads)
    sparse_fragments(const Half* __restrict__ values,
                     const unsigned* __restrict__ metadata,
                     const Half* __restrict__ B, float* __restrict__ C, int m, int n,
                     int k)
{
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const int tile = blockIdx.y * (kThreads / 32) + threadIdx.x / 32;
    const int first = blockIdx.x * (8 * kAcross);
    if (tile >= m / kHigh) return;
    const unsigned* const upper = reinterpret_cast<const unsigned*>(
        values + static_cast<size_t>(tile * kHigh + g) * (k / 2));
    const unsigned* const lower = upper + 8 * (k / 4);
    float d[kAcross][4] = {};
    for (int k0 = 0; k0 < k; k0 += kSlab) {
        const unsigned e = metadata_of(metadata, k0 / kSlab, tile, m / kHigh)[lane];
        for (int half = 0; half < 2; ++half) {
            const int at = k0 / 4 + half * 8 + t;  // in pairs of stored halves
            const unsigned a[4] = {upper[at], lower[at], upper[at + 4], lower[at + 4]};
            for (int j = 0; j < kAcross; ++j) {
                const int col = first + 8 * j + g;
                if (first + 8 * j >= n) break;  // warp-uniform: n is a multiple of 8
                unsigned b[4];
                for (int i = 0; i < 4; ++i) {
                    const size_t row = k0 + 32 * half + 8 * i + 2 * t;
                    b[i] = pair(B[row * n + col], B[(row + 1) * n + col]);
                }
                if (half == 0)
                    mma_sparse_f16<0>(d[j], a, b, e);
                else
                    mma_sparse_f16<1>(d[j], a, b, e);
            }
        }
    }
    for (int j = 0; j < kAcross; ++j) {
        const int col = first + 8 * j + 2 * t;
        if (col >= n) break;
        float* const to = C + static_cast<size_t>(tile * kHigh + g) * n + col;
        *reinterpret_cast<float2*>(to) = {d[j][0], d[j][1]};
        *reinterpret_cast<float2*>(to + static_cast<size_t>(8) * n) = {d[j][2],
                                                                       d[j][3]};
    }
}
