// A block streams through the planes of a column, which the copy engine loads in boxes.
#pragma once
#include "../../common/hopper/dependent.cuh"
#include "../../common/hopper/tma.cuh"
#include "sums.cuh"

// The rows of a box of two planes must begin at multiples of 16 bytes, as tiles do that
// keep a multiple of four columns. Otherwise, boxes are four columns wider than tiles
// if shared memory allows; if not, a tile keeps up to three columns fewer.
template <int K>
struct Box {
    static constexpr int kKept = kEdge - K + 1;
    static constexpr bool kWider = kKept % 4 != 0 && K <= 7;
    static constexpr int kWide = kWider ? kKept : kKept / 4 * 4;  // columns kept
    static constexpr int kLead = kWider ? K / 2 : (K / 2 + 3) / 4 * 4;
    static constexpr int kPitch = kEdge + (kWider ? 4 : 0);
    static constexpr int kFloats = 2 * kEdge * kPitch;
    static constexpr int kBytes = kFloats * static_cast<int>(sizeof(float));
    // The distance between pairs in complex numbers, enough for a box or its spectrum.
    static constexpr int kPair = kFloats / 2 > ::kPair ? kFloats / 2 : ::kPair;
};

// Computes output planes `begin` to `end` - 1 of the block's column, in a volume whose
// planes have n rows and columns. load(to, box, row, z, barrier) starts the copy of
// planes z and z + 1, which completes on the barrier; mend(place) recomputes the
// outputs from that place on that are not finite. kDependent: the previous launch,
// which transforms the weights, may still be running.
template <int K, bool kDependent, typename Load, typename Mend>
__device__ __forceinline__ void walk_column(Load load, Mend mend,
                                            const float2* spectra,
                                            float* __restrict__ target, int n,
                                            int begin, int end)
{
    using B = Box<K>;
    extern __shared__ __align__(128) float2 pairs[];
    float2* const kernel_spectra = pairs + kPairs * B::kPair;
    const int warp = threadIdx.x / kEdge, lane = threadIdx.x % kEdge;
    Barrier* const arrived =
        reinterpret_cast<Barrier*>(kernel_spectra + K * kOwners) + warp;
    const int row = blockIdx.y * B::kKept;
    // The first columns of the tile and of its box, which starts up to three earlier.
    const int first = static_cast<int>(blockIdx.x) * B::kWide - B::kLead,
              box = first & ~3, col = first + K / 2;
    float2* const own_pair = pairs + warp * B::kPair;
    // Starts the copy of the warp's pair of planes for the step that begins at plane z.
    const auto fetch = [&](int z) {
        z += 2 * warp;
        if (lane == 0 && z < end + K / 2) {
            mbarrier_arrive_expect(arrived, B::kBytes);
            load(own_pair, box, row - K / 2, z, arrived);
        }
    };
    if (lane == 0) {
        mbarrier_init(arrived, 1);
        fence_mbarrier_init();
    }
    __syncwarp();
    fetch(begin - K / 2);
    if (kDependent) wait_for_launch_before();
    copy_spectra<K>(kernel_spectra, spectra);
    bool strange = false;
    Sums<K> sums[kSlots] = {};
    unsigned parity = 0;
    for (int z = begin - K / 2; z < end + K / 2; z += 2 * kPairs, parity ^= 1) {
        const int count = min(kPairs, (end + K / 2 - z + 1) / 2);
        float2 v[kEdge];
        if (warp < count) {
            mbarrier_wait(arrived, parity);
            const float* const raw =
                reinterpret_cast<const float*>(own_pair) + first - box + lane;
#pragma unroll
            for (int y = 0; y < kEdge; ++y) {
                v[y] = {raw[y * B::kPitch], raw[(y + kEdge) * B::kPitch]};
            }
            __syncwarp();  // all lanes have read the box; the spectrum replaces it
            transform(own_pair, v);
        }
        __syncthreads();  // the spectra of all pairs are complete
        sum_planes<K, B::kPair>(pairs, kernel_spectra, sums, count);
        __syncthreads();  // all outputs of this step are complete
        const Place to = {z + 2 * warp - K / 2, row, col};
        const bool a = to.z >= begin && to.z < end,
                   b = to.z + 1 >= begin && to.z + 1 < end;
        const auto fetch_next = [&] {
            fence_proxy_async();
            __syncwarp();  // all lanes have read before the copy engine writes
            fetch(z + 2 * kPairs);
            __syncwarp();
        };
        if (a || b) {
            transform_back<B::kKept>(v, own_pair, fetch_next);
            strange |= store_columns<B::kKept, B::kWide>(target, n, to, a, b, v);
        } else {
            fetch_next();
        }
    }
    if (__syncthreads_or(strange)) mend({begin, row, col});
}

// walk_column for a cube.
template <int K, bool kDependent>
__device__ __forceinline__ void walk_boxes(const TensorMap& map,
                                           const float* __restrict__ source,
                                           const float* __restrict__ weights,
                                           const float2* spectra,
                                           float* __restrict__ target, int n,
                                           int planes)
{
    const int begin = blockIdx.z * planes, end = min(begin + planes, n);
    walk_column<K, kDependent>(
        [&](float2* to, int box, int row, int z, Barrier* arrived) {
            tma_load(to, map, box, row, z, arrived);
        },
        [&](Place from) {
            mend<K, Box<K>::kWide>(target, source, weights, n, from, end - begin);
        },
        spectra, target, n, begin, end);
}
