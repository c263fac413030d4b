// Idea: small volumes have too few tiles for all SMs, so warps split the weights.
// From the rung before: kDeep planes of outputs stay in registers, and all input planes
// that they need in shared memory; no streaming.
// Requires: a block of kThreads threads; shared memory for kDeep + K - 1 planes of the
// tile and all weights, then for the sums of all groups except one; arrays aligned to
// 16 bytes; kWidth = 4 where n is a multiple of 4, kWidth = 1 otherwise.
#include "../../common/async_copy.cuh"
#include "planes.cuh"

constexpr int kAcross = 4;
constexpr int kDown = 16;
constexpr int kGroups = 3;
// Threads per group; each group covers the whole tile of outputs.
constexpr int kMembers = kAcross * kDown;
constexpr int kThreads = 192;
constexpr int kOut = 8;
constexpr int kDeep = 7;
// Planes per step: a weight in a register serves a row of each.
constexpr int kTogether = 3;
// Planes to wait for before the first sum; the others arrive during the sums.
constexpr int kFirst = 6;
static_assert(kFirst > 11 / 2, "the first plane of the volume is among them");
static_assert(kThreads == kGroups * kMembers,
              "every group has all outputs of the tile");

template <int K>
struct Tile {
    static constexpr int kRadius = K / 2;
    static constexpr int kLead = (kRadius + kQuad - 1) / kQuad * kQuad;
    static constexpr int kWide = kAcross * kOut + 2 * kLead;
    static constexpr int kHigh = kDown + K - 1;
    // An odd number of float4s, so that the windows of neighbouring rows are in
    // different banks.
    static constexpr int kPitch = kWide / kQuad % 2 == 1 ? kWide : kWide + kQuad;
    static constexpr int kPlane = kHigh * kPitch;
    static constexpr int kPlanes =
        (kDeep + K - 1 + kTogether - 1) / kTogether * kTogether;
    static constexpr int kWindow = (kLead + kOut + kRadius + kQuad - 1) / kQuad * kQuad;
    // The weights of one row.
    static constexpr int kTaps = (K + kQuad - 1) / kQuad * kQuad;
};

template <int K, int kWidth>
__device__ void load_plane(float* __restrict__ plane, const float* __restrict__ source,
                           int n, int z, int first_row, int first_col)
{
    using T = Tile<K>;
    constexpr int kPieces = T::kWide / kWidth;
#pragma unroll 1
    for (int i = threadIdx.x; i < T::kHigh * kPieces; i += kThreads) {
        const int row = i / kPieces, col = i % kPieces * kWidth;
        const int y = first_row + row - T::kRadius, x = first_col + col - T::kLead;
        const bool inside = z >= 0 && z < n && y >= 0 && y < n && x >= 0 && x < n;
        const float* const from =
            inside ? source + (static_cast<size_t>(z) * n + y) * n + x : source;
        copy_async<kWidth>(plane + row * T::kPitch + col, from, inside);
    }
}

// Adds row dy of planes p to p + kTogether - 1 to the sums of all outputs that need it.
// For plane p and output s, dz is p - s, which is the same for plane p + 1 and output
// s + 1.
template <int K>
__device__ void add_rows(float (&sum)[kDeep][kOut], const float* __restrict__ row,
                         const float* __restrict__ taps, int p, int dy)
{
    using T = Tile<K>;
    float window[kTogether][T::kWindow];
#pragma unroll
    for (int next = 0; next < kTogether; ++next) {
#pragma unroll
        for (int i = 0; i < T::kWindow; i += kQuad) {
            *reinterpret_cast<float4*>(window[next] + i) =
                *reinterpret_cast<const float4*>(row + next * T::kPlane + i);
        }
    }
#pragma unroll
    for (int s = 1 - kTogether; s < kDeep; ++s) {
        const int dz = p - s;
        if (dz >= 0 && dz < K) {
            float weight[T::kTaps];
#pragma unroll
            for (int i = 0; i < T::kTaps; i += kQuad) {
                *reinterpret_cast<float4*>(weight + i) =
                    *reinterpret_cast<const float4*>(taps + (dz * K + dy) * T::kTaps +
                                                     i);
            }
#pragma unroll
            for (int dx = 0; dx < K; ++dx) {
#pragma unroll
                for (int next = 0; next < kTogether; ++next) {
                    if (s + next >= 0 && s + next < kDeep) {
#pragma unroll
                        for (int o = 0; o < kOut; ++o) {
                            sum[s + next][o] +=
                                weight[dx] *
                                window[next][T::kLead - T::kRadius + dx + o];
                        }
                    }
                }
            }
        }
    }
}

template <int K, int kWidth>
__global__ void __launch_bounds__(kThreads)
    conv3d_split_taps(const float* __restrict__ source,
                      const float* __restrict__ weights, float* __restrict__ target,
                      int n)
{
    using T = Tile<K>;
    extern __shared__ float4 shared[];
    float* const planes = reinterpret_cast<float*>(shared);
    float* const taps = planes + T::kPlanes * T::kPlane;
    const int group = threadIdx.x / kMembers, member = threadIdx.x % kMembers;
    const int tx = member % kAcross, ty = member / kAcross;
    const int first_col = blockIdx.x * kAcross * kOut, first_row = blockIdx.y * kDown,
              begin = blockIdx.z * kDeep;
    for (int p = 0; p < T::kPlanes; ++p) {
        if (p == kFirst) close_group();
        load_plane<K, kWidth>(planes + p * T::kPlane, source, n, begin - T::kRadius + p,
                              first_row, first_col);
    }
    close_group();
    for (int i = threadIdx.x; i < K * K * T::kTaps; i += kThreads) {
        taps[i] = i % T::kTaps < K ? weights[i / T::kTaps * K + i % T::kTaps] : 0.0f;
    }
    wait_for_groups<1>();
    __syncthreads();  // the first planes and the weights have arrived for all threads

    float sum[kDeep][kOut] = {};
    bool waited = false;
#pragma unroll 1
    for (int p = max(T::kRadius - begin, 0) / kTogether * kTogether;
         p < min(T::kPlanes, n - begin + T::kRadius); p += kTogether) {
        if (p + kTogether > kFirst && !waited) {
            wait_for_copies();
            __syncthreads();  // the other planes have arrived as well
            waited = true;
        }
        const float* const from = planes + p * T::kPlane + ty * T::kPitch + tx * kOut;
        // Every kGroups-th row, starting from a different row in each step, so that all
        // groups have nearly the same number of rows.
#pragma unroll 1
        for (int dy = (group + p / kTogether) % kGroups; dy < K; dy += kGroups) {
            add_rows<K>(sum, from + dy * T::kPitch, taps, p, dy);
        }
    }

    wait_for_copies();
    __syncthreads();  // all reads of the planes are done before sums overwrite them
    float* const mine = planes + member;
    if (group > 0) {
#pragma unroll
        for (int i = 0; i < kDeep * kOut; ++i) {
            mine[((group - 1) * kDeep * kOut + i) * kMembers] = sum[i / kOut][i % kOut];
        }
    }
    __syncthreads();  // all groups have stored their sums before group 0 adds them
    if (group > 0) {
        return;
    }
#pragma unroll 1
    for (int other = 0; other < kGroups - 1; ++other) {
#pragma unroll
        for (int i = 0; i < kDeep * kOut; ++i) {
            sum[i / kOut][i % kOut] += mine[(other * kDeep * kOut + i) * kMembers];
        }
    }
    const int row = first_row + ty;
    if (row < n) {
#pragma unroll
        for (int s = 0; s < kDeep; ++s) {
            if (begin + s < n) {
                float* const to =
                    target + (static_cast<size_t>(begin + s) * n + row) * n;
                store_row<kWidth>(to, first_col + tx * kOut, n, sum[s]);
            }
        }
    }
}
