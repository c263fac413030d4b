// Idea: three sums over half of the planes replace four: a fifth fewer products.
// From the rung before: streaming again; one pair of planes per step; a thread has
// eight outputs in a row.
// Requires: a block of kThreads threads; two pairs of planes of the tile, the table and
// all weights in shared memory; arrays aligned to 16 bytes; kWidth = 4 where n is a
// multiple of 4, kWidth = 1 otherwise.
#include "../../common/async_copy.cuh"
#include "planes.cuh"

constexpr int kAcross = 4;
constexpr int kDown = 32;
constexpr int kThreads = 128;
constexpr int kOut = 8;

template <int K>
struct Tile : PlaneTile<K, kAcross, kDown, kOut> {
    static constexpr int kEven = (K + 1) / 2;  // planes of weights with even index
    static constexpr int kOdd = K / 2;
    // All weights of one dy.
    static constexpr int kTaps = ((2 * kEven + kOdd) * K + kQuad - 1) / kQuad * kQuad;
};

// The three sums of the outputs in progress. Pair i of input planes is an earlier
// plane, z = 2 i + 1 - radius, and the later plane after it. With w[d] for the weights
// of plane d, and planes 2 j and 2 j + 1 as pair j of outputs:
//   later[j] = sum over a of w[2 a] * later plane of pair j + a
//   earlier[j] = sum over a of w[2 a + 1] * earlier plane of pair j + a
//   both[j] = sum over a of (w[2 a] + w[2 a + 1]) * (both planes of pair j + a, added)
//   output 2 j = later[j - 1] + earlier[j]
//   output 2 j + 1 = both[j] - later[j] - earlier[j]
// When pair i is added, slot s belongs to pair i - kOdd + s, and a = kOdd - s; by then,
// `earlier` of slot 0 is already complete.
template <int K>
struct Sums {
    float later[Tile<K>::kEven][kOut];
    float earlier[Tile<K>::kEven][kOut];
    float both[Tile<K>::kEven][kOut];
};

// Starts to copy planes z and z + 1; zeros for those outside the volume.
template <int K, int kWidth>
__device__ void load_pair(float* __restrict__ planes, const float* __restrict__ source,
                          int n, int z, const int* __restrict__ places)
{
    using T = Tile<K>;
    constexpr int kPieces = T::kPlane / kWidth;
#pragma unroll
    for (int p = 0; p < 2; ++p) {
        const bool within = z + p >= 0 && z + p < n;
        const float* const from =
            within ? source + static_cast<size_t>(z + p) * n * n : source;
#pragma unroll
        for (int first = 0; first < kPieces; first += kThreads) {
            const int i = first + threadIdx.x;
            if (first + kThreads <= kPieces || i < kPieces) {
                const int place = places[i];
                const bool inside = within && place >= 0;
                copy_async<kWidth>(planes + p * T::kPlane + i * kWidth,
                                   inside ? from + place : source, inside);
            }
        }
    }
}

// taps[dy]: the rows of weights for `later`, slots 0 to kOdd; then for `earlier`, from
// slot 1 on; then for `both`.
template <int K>
__device__ bool load_weights(float* __restrict__ taps,
                             const float* __restrict__ weights)
{
    using T = Tile<K>;
    bool found = false;
    for (int i = threadIdx.x; i < K * T::kTaps; i += kThreads) {
        const int dy = i / T::kTaps, row = i % T::kTaps / K, dx = i % T::kTaps % K;
        const bool later = row < T::kEven, earlier = !later && row < K;
        const int slot = later     ? row
                         : earlier ? row - T::kOdd
                                   : row - K,
                  a = T::kOdd - slot;
        const float* const from = weights + (2 * a * K + dy) * K + dx;
        float tap = 0.0f;
        if (a >= 0 && !earlier) tap += from[0];
        if (a >= 0 && !later && 2 * a + 1 < K) tap += from[K * K];
        taps[i] = tap;
        found |= is_strange(tap);
    }
    return found;
}

// Adds a window to slots kFrom to kTo - 1 of a sum. The weights of slot kFirst start at
// index kAt of the row.
template <int K, int kFrom, int kTo, int kFirst, int kAt>
__device__ void add_window(float (&sum)[Tile<K>::kEven][kOut],
                           const float (&window)[Tile<K>::kWindow],
                           const float* __restrict__ taps)
{
    using T = Tile<K>;
    constexpr int kBegin = kFrom > kFirst ? kFrom : kFirst;
    float weight[kQuad];
#pragma unroll
    for (int slot = kBegin; slot < kTo; ++slot) {
#pragma unroll
        for (int dx = 0; dx < K; ++dx) {
            const int i = kAt + (slot - kFirst) * K + dx;
            if (i % kQuad == 0 || (slot == kBegin && dx == 0)) {
                *reinterpret_cast<float4*>(weight) =
                    *reinterpret_cast<const float4*>(taps + i / kQuad * kQuad);
            }
#pragma unroll
            for (int o = 0; o < kOut; ++o) {
                sum[slot][o] +=
                    weight[i % kQuad] * window[T::kLead - T::kRadius + dx + o];
            }
        }
    }
}

template <int K>
__device__ void load_window(float (&window)[Tile<K>::kWindow],
                            const float* __restrict__ from)
{
#pragma unroll
    for (int i = 0; i < Tile<K>::kWindow; i += kQuad) {
        *reinterpret_cast<float4*>(window + i) =
            *reinterpret_cast<const float4*>(from + i);
    }
}

// Adds a pair of planes to slots kFrom to kTo - 1; in `later`, from one slot earlier,
// because the next output needs it.
template <int K, int kFrom, int kTo>
__device__ void add_pair(Sums<K>& sums, const float* __restrict__ from,
                         const float* __restrict__ taps)
{
    using T = Tile<K>;
#pragma unroll 1
    for (int dy = 0; dy < K; ++dy) {
        float window[T::kWindow], earlier[T::kWindow];
        const float* const row = taps + dy * T::kTaps;
        load_window<K>(window, from + T::kPlane + dy * T::kPitch);
        add_window<K, (kFrom > 0 ? kFrom - 1 : 0), kTo, 0, 0>(sums.later, window, row);
        load_window<K>(earlier, from + dy * T::kPitch);
        add_window<K, kFrom, kTo, 1, T::kEven * K>(sums.earlier, earlier, row);
#pragma unroll
        for (int i = T::kLead - T::kRadius; i < T::kLead + kOut + T::kRadius; ++i) {
            window[i] += earlier[i];
        }
        add_window<K, kFrom, kTo, 0, K * K>(sums.both, window, row);
    }
}

// Adds to the slots from `slot` on; those before belong to another block. The code is
// instantiated for every slot.
template <int K, int kFrom>
__device__ void add_from(Sums<K>& sums, const float* from, const float* taps, int slot)
{
    if constexpr (kFrom <= 0) {
        add_pair<K, 0, Tile<K>::kEven>(sums, from, taps);
    } else if (slot >= kFrom) {
        add_pair<K, kFrom, Tile<K>::kEven>(sums, from, taps);
    } else {
        add_from<K, kFrom - 1>(sums, from, taps, slot);
    }
}

// Adds to the slots before `slot`; the others belong to another block.
template <int K, int kTo>
__device__ void add_to(Sums<K>& sums, const float* from, const float* taps, int slot)
{
    if constexpr (kTo >= Tile<K>::kEven) {
        add_pair<K, 0, Tile<K>::kEven>(sums, from, taps);
    } else if (slot <= kTo) {
        add_pair<K, 0, kTo>(sums, from, taps);
    } else {
        add_to<K, kTo + 1>(sums, from, taps, slot);
    }
}

// One output, term by term, including the zeros outside the volume.
template <int K>
__device__ float term_by_term(const float* __restrict__ source,
                              const float* __restrict__ weights, int n, int plane,
                              int row, int col)
{
    float sum = 0.0f;
#pragma unroll 1
    for (int i = 0; i < K * K * K; ++i) {
        const int z = plane + i / (K * K) - K / 2, y = row + i / K % K - K / 2,
                  x = col + i % K - K / 2;
        const bool inside = z >= 0 && z < n && y >= 0 && y < n && x >= 0 && x < n;
        sum += weights[i] *
               (inside ? source[(static_cast<size_t>(z) * n + y) * n + x] : 0.0f);
    }
    return sum;
}

// Recomputes, term by term, those of a thread's outputs that are not finite: the
// difference of two infinite sums is NaN, and one of the sums covers a plane more than
// the output does.
template <int K>
__device__ void mend(float* __restrict__ target, const float* __restrict__ source,
                     const float* __restrict__ weights, int n, int begin, int end,
                     int row, int col)
{
#pragma unroll 1
    for (int z = begin; z < end && row < n; ++z) {
#pragma unroll 1
        for (int x = col; x < min(col + kOut, n); ++x) {
            float* const to = target + (static_cast<size_t>(z) * n + row) * n + x;
            if (is_strange(*to)) *to = term_by_term<K>(source, weights, n, z, row, x);
        }
    }
}

// Stores a row of outputs. Returns whether one of them is not finite.
template <int kWidth>
__device__ bool store_row_checked(float* __restrict__ row, int col, int n,
                                  const float (&sum)[kOut])
{
    bool strange = false;
#pragma unroll
    for (int o = 0; o < kOut; o += kWidth) {
        if (col + o < n) {
            if constexpr (kWidth == kQuad) {
                *reinterpret_cast<float4*>(row + col + o) = {sum[o], sum[o + 1],
                                                             sum[o + 2], sum[o + 3]};
            } else {
                row[col + o] = sum[o];
            }
        }
    }
#pragma unroll
    for (int o = 0; o < kOut; ++o) {
        strange |= is_strange(sum[o]);
    }
    return strange;
}

template <int K, int kWidth>
__global__ void __launch_bounds__(kThreads, K <= 9 ? 3 : 2)
    conv3d_karatsuba(const float* __restrict__ source,
                     const float* __restrict__ weights, float* __restrict__ target,
                     int n, int pairs, int whole, int rest)
{
    using T = Tile<K>;
    extern __shared__ float4 shared[];
    float* const taps = reinterpret_cast<float*>(shared);
    float* const ring = taps + K * T::kTaps;
    int* const places = reinterpret_cast<int*>(ring + 4 * T::kPlane);
    const int tx = threadIdx.x % kAcross, ty = threadIdx.x / kAcross;
    const int first_col = blockIdx.x * kAcross * kOut, first_row = blockIdx.y * kDown;
    // In a column of blocks, the first `whole` blocks have `pairs` pairs of output
    // planes each, the others `rest`.
    const int z_block = blockIdx.z;
    const int begin =
        z_block < whole ? z_block * pairs : whole * pairs + (z_block - whole) * rest;
    const int end = min(begin + (z_block < whole ? pairs : rest), (n + 1) / 2);
    find_places<T, kWidth>(places, n, first_row, first_col);
    // The barrier completes the table before any thread reads it. If a weight is not
    // finite, the zeros outside the volume count as well (0 times inf is NaN).
    bool strange = __syncthreads_or(load_weights<K>(taps, weights));
    // Starts one pair early, for `later`, but not before the volume.
    int i = max(begin - 1, (T::kRadius - 1) / 2), half = 0;
    load_pair<K, kWidth>(ring, source, n, 2 * i + 1 - T::kRadius, places);
    Sums<K> sums = {};
    for (; i < end + T::kOdd; ++i) {
        const int z = 2 * i + 1 - T::kRadius, slot_0 = i - T::kOdd;
        if (z < n) {
            wait_for_copies();
            // These planes have arrived, and all reads of the previous ones are done.
            __syncthreads();
            if (i + 1 < end + T::kOdd && z + 2 < n) {
                load_pair<K, kWidth>(ring + (1 - half) * 2 * T::kPlane, source, n,
                                     z + 2, places);
            }
            const float* const from =
                ring + half * 2 * T::kPlane + ty * T::kPitch + tx * kOut;
            half = 1 - half;
            // Slots ours to theirs - 1 belong to this block. If both bounds apply, only
            // `ours` is used.
            const int ours = begin - slot_0, theirs = end - slot_0;
            if (ours <= 0 && theirs >= T::kEven) {
                add_pair<K, 0, T::kEven>(sums, from, taps);
            } else if (ours > 0) {
                add_from<K, T::kEven>(sums, from, taps, ours);
            } else {
                add_to<K, 1>(sums, from, taps, theirs);
            }
        }
        // Complete now: `later` and `both` of slot 0, and `earlier` of slot 1, which is
        // subtracted from `both` of slot 1.
        float upper[kOut], lower[kOut];
#pragma unroll
        for (int o = 0; o < kOut; ++o) {
            upper[o] = sums.both[0][o] - sums.later[0][o];
            lower[o] = sums.later[0][o] + sums.earlier[1][o];
            sums.both[1][o] -= sums.earlier[1][o];
        }
        const int row = first_row + ty, col = first_col + tx * kOut;
        float* const to =
            target + (static_cast<long long>(2 * slot_0 + 1) * n + row) * n;
        if (row < n && slot_0 >= begin && slot_0 < end && 2 * slot_0 + 1 < n) {
            strange |= store_row_checked<kWidth>(to, col, n, upper);
        }
        if (row < n && slot_0 + 1 >= begin && slot_0 + 1 < end) {
            strange |= store_row_checked<kWidth>(to + static_cast<size_t>(n) * n, col,
                                                 n, lower);
        }
#pragma unroll
        for (int s = 0; s < T::kEven; ++s) {
#pragma unroll
            for (int o = 0; o < kOut; ++o) {
                sums.later[s][o] = s + 1 < T::kEven ? sums.later[s + 1][o] : 0.0f;
                sums.earlier[s][o] = s + 1 < T::kEven ? sums.earlier[s + 1][o] : 0.0f;
                sums.both[s][o] = s + 1 < T::kEven ? sums.both[s + 1][o] : 0.0f;
            }
        }
    }
    if (strange) {
        add_outside<K>(target, weights, n, 2 * begin, min(2 * end, n), first_row + ty,
                       first_col + tx * kOut, kOut);
        mend<K>(target, source, weights, n, 2 * begin, min(2 * end, n), first_row + ty,
                first_col + tx * kOut);
    }
}
