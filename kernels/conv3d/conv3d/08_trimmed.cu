// Idea: skip products for other blocks' planes, and compute addresses only once.
// From the rung before: add_plane skips slots; a table of places; a tile of 32 x 64
// outputs; shorter last blocks.
// Requires: a block of kThreads threads; two planes of the tile, the table and all
// weights in shared memory; arrays aligned to 16 bytes; kWidth = 4 where n is a
// multiple of 4, kWidth = 1 otherwise.
#include "../../common/async_copy.cuh"
#include "planes.cuh"

constexpr int kAcross = 4;
constexpr int kDown = 64;
constexpr int kThreads = 256;
constexpr int kOut = 8;

template <int K>
using Tile = PlaneTile<K, kAcross, kDown, kOut>;

template <int K, int kWidth>
__device__ void load_plane(float* __restrict__ plane, const float* __restrict__ source,
                           size_t at, const int* __restrict__ places)
{
    constexpr int kPieces = Tile<K>::kPlane / kWidth;
#pragma unroll
    for (int first = 0; first < kPieces; first += kThreads) {
        const int i = first + threadIdx.x;
        if (first + kThreads <= kPieces || i < kPieces) {
            const int place = places[i];
            copy_async<kWidth>(plane + i * kWidth,
                               place < 0 ? source : source + at + place, place >= 0);
        }
    }
}

// Adds the K rows of a plane's window to the sums of slots kFrom to kTo - 1.
template <int K, int kFrom, int kTo>
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
        for (int i = kFrom * K; i < kTo * K; ++i) {
            if (i % kQuad == 0 || i == kFrom * K) {
                *reinterpret_cast<float4*>(weight) = *reinterpret_cast<const float4*>(
                    taps + dy * T::kTaps + i / kQuad * kQuad);
            }
#pragma unroll
            for (int o = 0; o < kOut; ++o) {
                sum[i / K][o] +=
                    weight[i % kQuad] * window[T::kLead - T::kRadius + i % K + o];
            }
        }
    }
}

// Adds to the slots from `slot` on; those before belong to another block. The code is
// instantiated for every kStep slots.
template <int K, int kFrom>
__device__ void add_from(float (&sum)[K][kOut], const float* from, const float* taps,
                         int slot)
{
    // Fewer instances if they are long: the code must fit the instruction cache.
    constexpr int kStep = K <= 9 ? 1 : 2;
    if constexpr (kFrom <= 0) {
        add_plane<K, 0, K>(sum, from, taps);
    } else if (slot >= kFrom) {
        add_plane<K, kFrom, K>(sum, from, taps);
    } else {
        add_from<K, kFrom - kStep>(sum, from, taps, slot);
    }
}

// Adds to the slots before `slot`; the others belong to another block.
template <int K, int kTo>
__device__ void add_to(float (&sum)[K][kOut], const float* from, const float* taps,
                       int slot)
{
    constexpr int kStep = K <= 9 ? 1 : 2;
    if constexpr (kTo >= K) {
        add_plane<K, 0, K>(sum, from, taps);
    } else if (slot <= kTo) {
        add_plane<K, 0, kTo>(sum, from, taps);
    } else {
        add_to<K, kTo + kStep>(sum, from, taps, slot);
    }
}

template <int K, int kWidth>
__global__ void __launch_bounds__(kThreads, K <= 9 ? 2 : 1)
    conv3d_trimmed(const float* __restrict__ source, const float* __restrict__ weights,
                   float* __restrict__ target, int n, int planes, int whole, int rest)
{
    using T = Tile<K>;
    extern __shared__ float4 shared[];
    float* const taps = reinterpret_cast<float*>(shared);
    float* const ring = taps + K * T::kTaps;
    int* const places = reinterpret_cast<int*>(ring + 2 * T::kPlane);
    const int tx = threadIdx.x % kAcross, ty = threadIdx.x / kAcross;
    const int first_col = blockIdx.x * kAcross * kOut, first_row = blockIdx.y * kDown;
    // In a column of blocks, the first `whole` blocks have `planes` output planes each,
    // the others `rest`.
    const int z_block = blockIdx.z;
    const int begin =
        z_block < whole ? z_block * planes : whole * planes + (z_block - whole) * rest;
    const int end = min(begin + (z_block < whole ? planes : rest), n);
    const size_t area = static_cast<size_t>(n) * n;
    find_places<T, kWidth>(places, n, first_row, first_col);
    // The barrier completes the table before any thread reads it. If a weight is not
    // finite, the zeros outside the volume count as well (0 times inf is NaN).
    const bool strange = __syncthreads_or(load_weights<T>(taps, weights));
    int z = max(begin - T::kRadius, 0);
    const int last = min(end + T::kRadius, n) - 1;
    load_plane<K, kWidth>(ring + z % 2 * T::kPlane, source, z * area, places);
    // sum[s] belongs to output plane z - radius + s; slot 0 is complete once plane z
    // has been added.
    float sum[K][kOut] = {};
    for (; z < end + T::kRadius; ++z) {
        if (z <= last) {
            wait_for_copies();
            // This plane has arrived, and all reads of the previous one are done.
            __syncthreads();
            if (z < last)
                load_plane<K, kWidth>(ring + (z + 1) % 2 * T::kPlane, source,
                                      (z + 1) * area, places);
            const float* const from =
                ring + z % 2 * T::kPlane + ty * T::kPitch + tx * kOut;
            // Slots ours to theirs - 1 belong to this block. If both bounds apply, only
            // `ours` is used.
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
