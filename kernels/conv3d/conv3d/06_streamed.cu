// Idea: a block marches through the planes; an input plane, loaded once, is added to all K output planes it reaches.
// From the rung before: the tile is one plane of 32 x 32 outputs; a thread keeps K rows of sums, for K planes.
// Requires: a block of kThreads threads, one plane of the tile and all weights in shared memory, arrays aligned to 16
// bytes; kWidth = 4 where n is a multiple of 4, kWidth = 1 otherwise.
#include "outside.cuh"

constexpr int kAcross = 4;
constexpr int kDown = 32;
constexpr int kThreads = 128;
constexpr int kOut = 8;
constexpr int kQuad = 4;

// What a block of K x K x K weights needs of shared memory; a row begins kLead floats before the tile's first output.
template <int K>
struct Tile {
    static constexpr int kRadius = K / 2;
    static constexpr int kLead = (kRadius + kQuad - 1) / kQuad * kQuad;
    static constexpr int kWide = kAcross * kOut + 2 * kLead;
    static constexpr int kHigh = kDown + K - 1;
    // An odd number of float4: then the windows of two neighbouring rows lie in different banks.
    static constexpr int kPitch = kWide / kQuad % 2 == 1 ? kWide : kWide + kQuad;
    static constexpr int kPlane = kHigh * kPitch;
    static constexpr int kWindow = (kLead + kOut + kRadius + kQuad - 1) / kQuad * kQuad;
    static constexpr int kTaps = (K * K + kQuad - 1) / kQuad * kQuad;  // the weights of one dy
};

// Floats col to col + 3 of a row of n floats; zeros where it does not reach.
template <int kWidth>
__device__ float4 load_quad(const float* __restrict__ row, int col, int n)
{
    float4 quad = {};
    if constexpr (kWidth == kQuad) {
        if (col >= 0 && col < n) quad = *reinterpret_cast<const float4*>(row + col);
    } else {
        if (col >= 0 && col < n) quad.x = row[col];
        if (col + 1 >= 0 && col + 1 < n) quad.y = row[col + 1];
        if (col + 2 >= 0 && col + 2 < n) quad.z = row[col + 2];
        if (col + 3 >= 0 && col + 3 < n) quad.w = row[col + 3];
    }
    return quad;
}

template <int K, int kWidth>
__device__ void load_plane(
    float* __restrict__ plane, const float* __restrict__ source, int n, int z, int first_row, int first_col)
{
    using T = Tile<K>;
    for (int i = threadIdx.x; i < T::kHigh * (T::kWide / kQuad); i += kThreads) {
        const int row = i / (T::kWide / kQuad), col = i % (T::kWide / kQuad) * kQuad;
        const int y = first_row + row - T::kRadius;
        float4 quad = {};
        if (y >= 0 && y < n) {
            quad = load_quad<kWidth>(source + (static_cast<size_t>(z) * n + y) * n, first_col + col - T::kLead, n);
        }
        *reinterpret_cast<float4*>(plane + row * T::kPitch + col) = quad;
    }
}

// taps[dy][slot][dx]: for the sums of slot s this plane is the one with dz = K - 1 - s.
template <int K>
__device__ bool load_weights(float* __restrict__ taps, const float* __restrict__ weights)
{
    constexpr int kTaps = Tile<K>::kTaps;
    bool found = false;
    for (int i = threadIdx.x; i < K * kTaps; i += kThreads) {
        const int dy = i / kTaps, slot = i % kTaps / K, dx = i % kTaps % K;
        taps[i] = slot < K ? weights[((K - 1 - slot) * K + dy) * K + dx] : 0.0f;
        found |= is_strange(taps[i]);
    }
    return found;
}

// Adds the window of one plane, K rows of it, to the sums of all slots: K * K * K * kOut multiply-adds.
template <int K>
__device__ void add_plane(float (&sum)[K][kOut], const float* __restrict__ from, const float* __restrict__ taps)
{
    using T = Tile<K>;
#pragma unroll 1
    for (int dy = 0; dy < K; ++dy) {
        float window[T::kWindow];
#pragma unroll
        for (int i = 0; i < T::kWindow; i += kQuad) {
            *reinterpret_cast<float4*>(window + i) = *reinterpret_cast<const float4*>(from + dy * T::kPitch + i);
        }
        float weight[kQuad];
#pragma unroll
        for (int i = 0; i < K * K; ++i) {
            if (i % kQuad == 0) {
                *reinterpret_cast<float4*>(weight) = *reinterpret_cast<const float4*>(taps + dy * T::kTaps + i);
            }
#pragma unroll
            for (int o = 0; o < kOut; ++o) {
                sum[i / K][o] += weight[i % kQuad] * window[T::kLead - T::kRadius + i % K + o];
            }
        }
    }
}

template <int kWidth>
__device__ void store_row(float* __restrict__ row, int col, int n, const float (&sum)[kOut])
{
#pragma unroll
    for (int o = 0; o < kOut; o += kWidth) {
        if (col + o < n) {
            if constexpr (kWidth == kQuad) {
                *reinterpret_cast<float4*>(row + col + o) = {sum[o], sum[o + 1], sum[o + 2], sum[o + 3]};
            } else {
                row[col + o] = sum[o];
            }
        }
    }
}

template <int K, int kWidth>
__global__ void __launch_bounds__(kThreads) conv3d_streamed(
    const float* __restrict__ source, const float* __restrict__ weights, float* __restrict__ target, int n, int planes)
{
    using T = Tile<K>;
    extern __shared__ float4 shared[];
    float* const taps = reinterpret_cast<float*>(shared);
    float* const plane = taps + K * T::kTaps;
    const int tx = threadIdx.x % kAcross, ty = threadIdx.x / kAcross;
    const int first_col = blockIdx.x * kAcross * kOut, first_row = blockIdx.y * kDown;
    const int begin = blockIdx.z * planes, end = min(begin + planes, n);
    // Whether there is a weight for which the planes outside the volume count; the table is whole for all threads.
    const bool strange = __syncthreads_or(load_weights<K>(taps, weights));
    // sum[s] belongs to the output plane z - radius + s; when z has been added, that of slot 0 is complete.
    float sum[K][kOut] = {};
    for (int z = max(begin - T::kRadius, 0); z < end + T::kRadius; ++z) {
        if (z < n) {
            __syncthreads();  // all threads are done with the plane before this one
            load_plane<K, kWidth>(plane, source, n, z, first_row, first_col);
            __syncthreads();  // the plane is whole, and before the first one the weights, too
            add_plane<K>(sum, plane + ty * T::kPitch + tx * kOut, taps);
        }
        const int done = z - T::kRadius, row = first_row + ty;
        if (done >= begin && row < n) {
            store_row<kWidth>(target + (static_cast<size_t>(done) * n + row) * n, first_col + tx * kOut, n, sum[0]);
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
        add_outside<K>(target, weights, n, begin, end, first_row + ty, first_col + tx * kOut, kOut);
    }
}
