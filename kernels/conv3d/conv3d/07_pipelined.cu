// Idea: cp.async copies the next plane to shared memory while this one is added.
// From the rung before: two planes in shared memory, one barrier per plane instead of
// two, and no registers for data in flight.
// Requires: a block of kThreads threads, two planes of the tile and all weights in
// shared memory, arrays aligned to 16 bytes; kWidth = 4 where n is a multiple of 4,
// kWidth = 1 otherwise.
#include "../../common/async_copy.cuh"
#include "planes.cuh"

constexpr int kAcross = 4;
constexpr int kDown = 32;
constexpr int kThreads = 128;
constexpr int kOut = 8;

template <int K>
using Tile = PlaneTile<K, kAcross, kDown, kOut>;

template <int K, int kWidth>
__device__ void load_plane(float* __restrict__ plane, const float* __restrict__ source,
                           int n, int z, int first_row, int first_col)
{
    using T = Tile<K>;
    constexpr int kPieces = T::kWide / kWidth;
    for (int i = threadIdx.x; i < T::kHigh * kPieces; i += kThreads) {
        const int row = i / kPieces, col = i % kPieces * kWidth;
        const int y = first_row + row - T::kRadius, x = first_col + col - T::kLead;
        const bool inside = z < n && y >= 0 && y < n && x >= 0 && x < n;
        const float* const from =
            inside ? source + (static_cast<size_t>(z) * n + y) * n + x : source;
        copy_async<kWidth>(plane + row * T::kPitch + col, from, inside);
    }
}

// Adds the K rows of a plane's window to the sums of all slots: K * K * K * kOut
// multiply-adds.
template <int K>
__device__ void add_plane(float (&sum)[K][kOut], const float* __restrict__ from,
                          const float* __restrict__ taps)
{
    using T = Tile<K>;
#pragma unroll 1
    for (int dy = 0; dy < K; ++dy) {
        float window[T::kWindow];
#pragma unroll
        for (int i = 0; i < T::kWindow; i += kQuad) {
            *reinterpret_cast<float4*>(window + i) =
                *reinterpret_cast<const float4*>(from + dy * T::kPitch + i);
        }
        float weight[kQuad];
#pragma unroll
        for (int i = 0; i < K * K; ++i) {
            if (i % kQuad == 0) {
                *reinterpret_cast<float4*>(weight) =
                    *reinterpret_cast<const float4*>(taps + dy * T::kTaps + i);
            }
#pragma unroll
            for (int o = 0; o < kOut; ++o) {
                sum[i / K][o] +=
                    weight[i % kQuad] * window[T::kLead - T::kRadius + i % K + o];
            }
        }
    }
}

template <int K, int kWidth>
__global__ void __launch_bounds__(kThreads)
    conv3d_pipelined(const float* __restrict__ source,
                     const float* __restrict__ weights, float* __restrict__ target,
                     int n, int planes)
{
    using T = Tile<K>;
    extern __shared__ float4 shared[];
    float* const taps = reinterpret_cast<float*>(shared);
    float* const ring = taps + K * T::kTaps;
    const int tx = threadIdx.x % kAcross, ty = threadIdx.x / kAcross;
    const int first_col = blockIdx.x * kAcross * kOut, first_row = blockIdx.y * kDown;
    const int begin = blockIdx.z * planes, end = min(begin + planes, n);
    int z = max(begin - T::kRadius, 0);
    load_plane<K, kWidth>(ring + z % 2 * T::kPlane, source, n, z, first_row, first_col);
    // If a weight is not finite, the zeros outside the volume count (0 times inf is
    // NaN). The barrier completes the table before any thread reads it.
    const bool strange = __syncthreads_or(load_weights<T>(taps, weights));
    // sum[s] belongs to output plane z - radius + s; slot 0 is complete once plane z
    // has been added.
    float sum[K][kOut] = {};
    for (; z < end + T::kRadius; ++z) {
        if (z < n) {
            wait_for_copies();
            // This plane has arrived, and all reads of the previous one are done.
            __syncthreads();
            load_plane<K, kWidth>(ring + (z + 1) % 2 * T::kPlane, source, n, z + 1,
                                  first_row, first_col);
            add_plane<K>(sum, ring + z % 2 * T::kPlane + ty * T::kPitch + tx * kOut,
                         taps);
        }
        const int done = z - T::kRadius, row = first_row + ty;
        if (done >= begin && row < n) {
            store_row<kWidth>(target + (static_cast<size_t>(done) * n + row) * n,
                              first_col + tx * kOut, n, sum[0]);
        }
#pragma unroll
        for (int s = 0; s < K; ++s) {
#pragma unroll
            for (int o = 0; o < kOut; ++o) {
                sum[s][o] = s + 1 < K ? sum[s + 1][o] : 0.0f;
            }
        }
    }
    if (strange) {
        add_outside<K>(target, weights, n, begin, end, first_row + ty,
                       first_col + tx * kOut, kOut);
    }
}
