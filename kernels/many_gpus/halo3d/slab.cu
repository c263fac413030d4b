// Idea: the rung `trimmed` of conv3d for a slab of planes instead of a cube.
// From the rung before: source and target number their planes separately; some planes
// may be in the memory of the neighbouring GPUs.
// Requires: what trimmed requires, and finite weights.
#include "../../conv3d/conv3d/08_trimmed.cu"

// The planes of a slab, numbered as in the source, which has planes `low` to `high` -
// 1. Outputs `from` to `to` - 1 are computed; plane z of the source corresponds to
// plane z - `shift` of the target.
struct Slab {
    int low, high, from, to, shift;
};

// A column of blocks: the first `whole` blocks have `planes` output planes each, the
// others `rest`.
struct Column {
    int planes, whole, rest;
};

// `plane_of(z)` is the address of plane z, in any GPU's memory.
template <int K, int kWidth, typename PlaneOf>
__device__ void convolve_slab(PlaneOf plane_of, const float* __restrict__ weights,
                              float* __restrict__ target, int n, const Slab& slab,
                              const Column& column)
{
    using T = Tile<K>;
    extern __shared__ float4 shared[];
    float* const taps = reinterpret_cast<float*>(shared);
    float* const ring = taps + K * T::kTaps;
    int* const places = reinterpret_cast<int*>(ring + 2 * T::kPlane);
    const int tx = threadIdx.x % kAcross, ty = threadIdx.x / kAcross;
    const int first_col = blockIdx.x * kAcross * kOut, first_row = blockIdx.y * kDown;
    const int z_block = blockIdx.z;
    const bool is_whole = z_block < column.whole;
    const int begin =
        slab.from + min(z_block, column.whole) * column.planes +
        max(z_block - column.whole, 0) * column.rest;
    const int end = min(begin + (is_whole ? column.planes : column.rest), slab.to);
    find_places<T, kWidth>(places, n, first_row, first_col);
    load_weights<T>(taps, weights);
    // The table is complete before any thread reads it.
    __syncthreads();
    int z = max(begin - T::kRadius, slab.low);
    const int last = min(end + T::kRadius, slab.high) - 1;
    load_plane<K, kWidth>(ring + z % 2 * T::kPlane, plane_of(z), 0, places);
    // sum[s] belongs to output plane z - radius + s; slot 0 is complete once plane z
    // has been added.
    float sum[K][kOut] = {};
    for (; z < end + T::kRadius; ++z) {
        if (z <= last) {
            wait_for_copies();
            // This plane has arrived, and all reads of the previous one are done.
            __syncthreads();
            if (z < last)
                load_plane<K, kWidth>(ring + (z + 1) % 2 * T::kPlane, plane_of(z + 1),
                                      0, places);
            const float* const from =
                ring + z % 2 * T::kPlane + ty * T::kPitch + tx * kOut;
            const int ours = begin - z + T::kRadius, theirs = end - z + T::kRadius;
            if (ours <= 0 && theirs >= K) {
                add_plane<K, 0, K>(sum, from, taps);
            } else if (ours > 0) {
                add_from<K, K - 1>(sum, from, taps, ours);
            } else {
                add_to<K, 1>(sum, from, taps, theirs);
            }
        }
        const int done = z - T::kRadius, row = first_row + ty;
        if (done >= begin && row < n) {
            const size_t line = static_cast<size_t>(done - slab.shift) * n + row;
            store_row<kWidth>(target + line * n, first_col + tx * kOut, n, sum[0]);
        }
#pragma unroll
        for (int s = 0; s < K; ++s) {
#pragma unroll
            for (int o = 0; o < kOut; ++o) {
                sum[s][o] = s + 1 < K ? sum[s + 1][o] : 0.0f;
            }
        }
    }
}

// All planes are in the memory of this GPU.
template <int K, int kWidth>
__global__ void __launch_bounds__(kThreads, K <= 9 ? 2 : 1)
    conv3d_slab(const float* __restrict__ source, const float* __restrict__ weights,
                float* __restrict__ target, int n, int low, int high, int from, int to,
                int shift, int planes, int whole, int rest)
{
    const size_t area = static_cast<size_t>(n) * n;
    convolve_slab<K, kWidth>([&](int z) { return source + z * area; }, weights, target,
                             n, {low, high, from, to, shift}, {planes, whole, rest});
}

// Planes before `own` are in the previous GPU's memory, planes from `own` + `held` on
// in the next GPU's. Plane z of this slab is plane z + `planes_before` of the previous
// GPU's memory, or plane z - `held` of the next GPU's.
template <int K, int kWidth>
__global__ void __launch_bounds__(kThreads, K <= 9 ? 2 : 1)
    conv3d_slab_peers(const float* __restrict__ source,
                      const float* __restrict__ before, const float* __restrict__ after,
                      int own, int held, int planes_before,
                      const float* __restrict__ weights, float* __restrict__ target,
                      int n, int low, int high, int from, int to, int shift, int planes,
                      int whole, int rest)
{
    const size_t area = static_cast<size_t>(n) * n;
    const auto plane_of = [&](int z) {
        return z < own          ? before + (z + planes_before) * area
               : z < own + held ? source + z * area
                                : after + (z - held) * area;
    };
    convolve_slab<K, kWidth>(plane_of, weights, target, n, {low, high, from, to, shift},
                             {planes, whole, rest});
}
