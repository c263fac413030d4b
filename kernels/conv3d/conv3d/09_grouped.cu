// Idea: several input planes at a time: a weight in a register serves a row of each.
// From the rung before: kTogether planes per step, so kTogether times fewer loads of
// weights; four outputs in a row instead of eight.
// Requires: a block of kThreads threads; two steps of planes of the tile, the table and
// all weights in shared memory; arrays aligned to 16 bytes; kWidth = 4 where n is a
// multiple of 4, kWidth = 1 otherwise.
#include "../../common/async_copy.cuh"
#include "planes.cuh"

constexpr int kAcross = 8;
constexpr int kDown = 32;
constexpr int kThreads = 256;
constexpr int kOut = 4;

template <int K>
struct Tile : PlaneTile<K, kAcross, kDown, kOut> {
    // Planes per step, the fastest number of those tried: the code must fit the
    // instruction cache, and the sums must fit the registers.
    static constexpr int kTogether = K == 9 ? 4 : K == 5 || K == 7 ? 3 : 2;
    static constexpr int kSlots = K + kTogether - 1;
};

// Starts to copy the planes of one step, from z on; zeros for those past the last.
template <int K, int kWidth>
__device__ void load_planes(float* __restrict__ planes,
                            const float* __restrict__ source, int n, int z, int last,
                            const int* __restrict__ places)
{
    using T = Tile<K>;
    constexpr int kPieces = T::kPlane / kWidth;
#pragma unroll
    for (int p = 0; p < T::kTogether; ++p) {
        const float* const from = source + static_cast<size_t>(z + p) * n * n;
#pragma unroll
        for (int first = 0; first < kPieces; first += kThreads) {
            const int i = first + threadIdx.x;
            if (first + kThreads <= kPieces || i < kPieces) {
                const int place = places[i];
                const bool inside = z + p <= last && place >= 0;
                copy_async<kWidth>(planes + p * T::kPlane + i * kWidth,
                                   inside ? from + place : source, inside);
            }
        }
    }
}

// Adds the windows of one step's planes, K rows of each, to the sums of slots kFrom to
// kTo - 1. The first plane's weight of slot u is plane p's weight of slot u + p, so it
// is loaded once for all planes.
template <int K, int kFrom, int kTo>
__device__ void add_planes(float (&sum)[Tile<K>::kSlots][kOut],
                           const float* __restrict__ from,
                           const float* __restrict__ taps)
{
    using T = Tile<K>;
    constexpr int kFirst = kFrom < T::kTogether ? 0 : kFrom - T::kTogether + 1;
    constexpr int kLast = kTo < K ? kTo : K;
#pragma unroll 1
    for (int dy = 0; dy < K; ++dy) {
        float window[T::kTogether][T::kWindow];
#pragma unroll
        for (int p = 0; p < T::kTogether; ++p) {
#pragma unroll
            for (int i = 0; i < T::kWindow; i += kQuad) {
                *reinterpret_cast<float4*>(window[p] + i) =
                    *reinterpret_cast<const float4*>(from + p * T::kPlane +
                                                     dy * T::kPitch + i);
            }
        }
        float weight[kQuad];
#pragma unroll
        for (int i = kFirst * K; i < kLast * K; ++i) {
            if (i % kQuad == 0 || i == kFirst * K) {
                *reinterpret_cast<float4*>(weight) = *reinterpret_cast<const float4*>(
                    taps + dy * T::kTaps + i / kQuad * kQuad);
            }
#pragma unroll
            for (int p = 0; p < T::kTogether; ++p) {
                if (i / K + p >= kFrom && i / K + p < kTo) {
#pragma unroll
                    for (int o = 0; o < kOut; ++o) {
                        sum[i / K + p][o] +=
                            weight[i % kQuad] *
                            window[p][T::kLead - T::kRadius + i % K + o];
                    }
                }
            }
        }
    }
}

// Adds to the slots from `slot` on; those before belong to another block. The code is
// instantiated for every kTogether slots.
template <int K, int kFrom>
__device__ void add_from(float (&sum)[Tile<K>::kSlots][kOut], const float* from,
                         const float* taps, int slot)
{
    if constexpr (kFrom <= 0) {
        add_planes<K, 0, Tile<K>::kSlots>(sum, from, taps);
    } else if (slot >= kFrom) {
        add_planes<K, kFrom, Tile<K>::kSlots>(sum, from, taps);
    } else {
        add_from<K, kFrom - Tile<K>::kTogether>(sum, from, taps, slot);
    }
}

// Adds to the slots before `slot`; the others belong to another block.
template <int K, int kTo>
__device__ void add_to(float (&sum)[Tile<K>::kSlots][kOut], const float* from,
                       const float* taps, int slot)
{
    if constexpr (kTo >= Tile<K>::kSlots) {
        add_planes<K, 0, Tile<K>::kSlots>(sum, from, taps);
    } else if (slot <= kTo) {
        add_planes<K, 0, kTo>(sum, from, taps);
    } else {
        add_to<K, kTo + Tile<K>::kTogether>(sum, from, taps, slot);
    }
}

template <int K, int kWidth>
__global__ void __launch_bounds__(kThreads, 2)
    conv3d_grouped(const float* __restrict__ source, const float* __restrict__ weights,
                   float* __restrict__ target, int n, int planes, int whole, int rest)
{
    using T = Tile<K>;
    constexpr int kStep = T::kTogether * T::kPlane;
    extern __shared__ float4 shared[];
    float* const taps = reinterpret_cast<float*>(shared);
    float* const ring = taps + K * T::kTaps;
    int* const places = reinterpret_cast<int*>(ring + 2 * kStep);
    const int tx = threadIdx.x % kAcross, ty = threadIdx.x / kAcross;
    const int first_col = blockIdx.x * kAcross * kOut, first_row = blockIdx.y * kDown;
    // In a column of blocks, the first `whole` blocks have `planes` output planes each,
    // the others `rest`.
    const int z_block = blockIdx.z;
    const int begin =
        z_block < whole ? z_block * planes : whole * planes + (z_block - whole) * rest;
    const int end = min(begin + (z_block < whole ? planes : rest), n);
    find_places<T, kWidth>(places, n, first_row, first_col);
    // The barrier completes the table before any thread reads it. If a weight is not
    // finite, the zeros outside the volume count as well (0 times inf is NaN).
    const bool strange = __syncthreads_or(load_weights<T>(taps, weights));
    int z = max(begin - T::kRadius, 0), half = 0;
    const int last = min(end + T::kRadius, n) - 1;
    load_planes<K, kWidth>(ring, source, n, z, last, places);
    // sum[s] belongs to output plane z - radius + s; after a step, the first kTogether
    // slots are complete.
    float sum[T::kSlots][kOut] = {};
    for (; z < end + T::kRadius; z += T::kTogether) {
        if (z <= last) {
            wait_for_copies();
            // These planes have arrived, and all reads of the previous ones are done.
            __syncthreads();
            if (z + T::kTogether <= last) {
                load_planes<K, kWidth>(ring + (1 - half) * kStep, source, n,
                                       z + T::kTogether, last, places);
            }
            const float* const from = ring + half * kStep + ty * T::kPitch + tx * kOut;
            half = 1 - half;
            // Slots ours to theirs - 1 belong to this block. If both bounds apply, only
            // `ours` is used.
            const int ours = begin - z + T::kRadius, theirs = end - z + T::kRadius;
            if (ours <= 0 && theirs >= T::kSlots) {
                add_planes<K, 0, T::kSlots>(sum, from, taps);
            } else if (ours > 0) {
                add_from<K, K - 1>(sum, from, taps, ours);
            } else {
                add_to<K, T::kTogether>(sum, from, taps, theirs);
            }
        }
        const int row = first_row + ty;
#pragma unroll
        for (int p = 0; p < T::kTogether; ++p) {
            const int done = z + p - T::kRadius;
            if (done >= begin && done < end && row < n) {
                store_row<kWidth>(target + (static_cast<size_t>(done) * n + row) * n,
                                  first_col + tx * kOut, n, sum[p]);
            }
        }
#pragma unroll
        for (int s = 0; s < T::kSlots; ++s) {
#pragma unroll
            for (int o = 0; o < kOut; ++o) {
                sum[s][o] =
                    s + T::kTogether < T::kSlots ? sum[s + T::kTogether][o] : 0.0f;
            }
        }
    }
    if (strange) {
        add_outside<K>(target, weights, n, begin, end, first_row + ty,
                       first_col + tx * kOut, kOut);
    }
}
