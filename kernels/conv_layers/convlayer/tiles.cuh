// Shared by direct, split_k and winograd: the tiling of a layer, and the copies of its
// inputs and weights to shared memory.
#pragma once
#include "../../common/async_copy.cuh"

// Input maps per stage, so that an output map's taps per stage are a multiple of 4.
constexpr int kMaps = 4;
constexpr int kStages = 3;  // two stages are in flight while one is used
// 16 threads copy four taps of four output maps.
constexpr int kTapLanes = 4, kOutLanes = 4;
constexpr unsigned kFloat = sizeof(float);

// If wanted, starts to copy one float, or a zero, to an address in shared memory. The
// condition predicates the instruction, because a branch costs more. Before sm_80, a
// store replaces the copy.
__device__ void copy_or_clear(unsigned to, const float* from, bool inside,
                              bool wanted = true)
{
#if __CUDA_ARCH__ >= 800
    asm volatile(
        "{ .reg .pred wanted;\n\t"
        "setp.ne.u32 wanted, %3, 0;\n\t"
        "@wanted cp.async.ca.shared.global [%0], [%1], 4, %2; }" ::"r"(to),
        "l"(from), "r"(inside ? 4 : 0), "r"(static_cast<unsigned>(wanted))
        : "memory");
#else
    if (wanted) {
        asm volatile("st.shared.f32 [%0], %1;" ::"r"(to), "f"(inside ? *from : 0.0f)
                     : "memory");
    }
#endif
}

// The tiling of a layer: the outputs of a thread, and the number of threads across and
// down a block's tile.
template <int kSize_, int kOuts, int kHigh, int kWide_, int kOutGroups, int kDown,
          int kAcross, int kPitch_>
struct Cut {
    static constexpr int kSize = kSize_, kWide = kWide_, kPitch = kPitch_;
    static constexpr int kThreads = kOutGroups * kDown * kAcross;
    static constexpr int kTileRows = kHigh * kDown, kTileCols = kWide * kAcross;
    static constexpr int kTaps = kSize * kSize;
    static constexpr int kTileOuts = kOuts * kOutGroups;
    // A thread reads its window in quads. If its pixels are not whole quads, each
    // thread gets a private copy of its stretch of the row.
    static constexpr bool kPrivate = kWide % 4 != 0;
    static constexpr int kWindow = kWide + kSize - 1;
    static constexpr int kStretch = (kWindow + 3) / 4 * 4;
    static constexpr int kRows = kHigh * kDown + kSize - 1;
    static constexpr int kCols =
        kPrivate ? kWindow * kAcross : kWide * kAcross + kSize - 1;
    static constexpr int kPlane = kRows * kPitch;
    static constexpr int kSlots = (kRows * kCols + kThreads - 1) / kThreads;
    // A warp's store, four taps of eight output maps, covers all 32 banks.
    static constexpr int kWeightPitch = (kTileOuts + 31) / 32 * 32 + 8;
    static constexpr int kStageWeights = kMaps * kTaps * kWeightPitch;
    static constexpr int kStage = kStageWeights + kMaps * kPlane;
    static_assert(kOuts % 4 == 0 && kTileOuts % kOutLanes == 0,
                  "weights are read by four");
    static_assert(kPitch % 4 == 0 && kPitch >= (kPrivate ? kStretch * kAcross : kCols),
                  "rows start at whole quads");
    static_assert(kThreads % (kTapLanes * kOutLanes) == 0 && kOutGroups % 2 == 0,
                  "16 threads transpose weights, 2 share inputs");
};

// The position of a block: its first row and column, its first output map, and the
// input maps that it sums over.
struct Place {
    int row, col, out, map, maps;
};

// A thread's copies for each stage.
template <class C, bool kWhole>
struct Fetch {
    static constexpr int kTurnAtOnce = C::kThreads / (kTapLanes * kOutLanes),
                         kTurns = C::kTileOuts / kOutLanes;
    static constexpr int kTurners =
        kTurnAtOnce >= kTurns ? kTurns : kTurnAtOnce & -kTurnAtOnce;
    static_assert(kTurns % kTurners == 0,
                  "each turner has the same number of quads of output maps");

    // Offsets: from, in floats of an input map; to, in bytes of a stage.
    unsigned slot_from[C::kSlots], slot_to[C::kSlots];
    bool slot_inside[C::kSlots];
    unsigned turned_to;
    int outs_left, maps_left, depth;
    const float *inputs, *taps;
    size_t plane;

    __device__ Fetch(const float* input, const float* weights, int n, int c_in,
                     int c_out, const Place& place)
    {
        constexpr int kHalo = C::kSize / 2;
        const int thread = threadIdx.x;
#pragma unroll
        for (int s = 0; s < C::kSlots; ++s) {
            const int i = thread + s * C::kThreads, line = i / C::kCols,
                      at = i % C::kCols;
            const int row = place.row + line - kHalo;
            const int col =
                place.col +
                (C::kPrivate ? at / C::kWindow * C::kWide + at % C::kWindow : at) -
                kHalo;
            slot_inside[s] =
                line < C::kRows && row >= 0 && row < n && col >= 0 && col < n;
            slot_from[s] = slot_inside[s] ? row * n + col : 0;
            slot_to[s] =
                kFloat *
                (C::kStageWeights + line * C::kPitch +
                 (C::kPrivate ? at / C::kWindow * C::kStretch + at % C::kWindow : at));
        }
        const int turner = thread / (kTapLanes * kOutLanes), tap = thread % kTapLanes;
        const int out = turner * kOutLanes + thread / kTapLanes % kOutLanes;
        turned_to = kFloat * (tap * C::kWeightPitch + out);
        outs_left = c_out - place.out - out;
        maps_left = place.maps;
        depth = c_in * C::kTaps;
        plane = static_cast<size_t>(n) * n;
        inputs = input + place.map * plane;
        taps = weights +
               static_cast<size_t>(outs_left > 0 ? place.out + out : 0) * depth +
               place.map * C::kTaps + tap;
    }

    // Starts the copies of the next stage: kMaps input maps and their weights,
    // transposed so that neighbouring output maps are adjacent.
    __device__ void stage(unsigned stage_at)
    {
        const int thread = threadIdx.x, tap_lane = thread % kTapLanes;
#pragma unroll
        for (int m = 0; m < kMaps; ++m) {
            const bool there = kWhole || m < maps_left;
#pragma unroll
            for (int s = 0; s < C::kSlots; ++s) {
                copy_or_clear(stage_at + m * (kFloat * C::kPlane) + slot_to[s],
                              inputs + (there ? slot_from[s] : 0),
                              there && slot_inside[s],
                              thread + s * C::kThreads < C::kRows * C::kCols);
            }
            if (there) inputs += plane;
        }
#pragma unroll
        for (int i = 0; i < kTurns / kTurners; ++i) {
            const int out = i * kTurners * kOutLanes;
            const float* const from = taps + static_cast<size_t>(out) * depth;
#pragma unroll
            for (int tap = 0; tap < kMaps * C::kTaps; tap += kTapLanes) {
                const bool inside = out < outs_left &&
                                    (kWhole || tap + tap_lane < maps_left * C::kTaps);
                copy_or_clear(
                    stage_at + turned_to + kFloat * (tap * C::kWeightPitch + out),
                    from + tap, inside, thread < kTurners * kTapLanes * kOutLanes);
            }
        }
        taps += kMaps * C::kTaps;
        maps_left -= kMaps;
    }
};

// The position of this block in a grid of pixels x output maps x parts of input maps.
template <class C>
__device__ Place place_of_block(int n, int c_in, int maps_of_part)
{
    const int across = (n + C::kTileCols - 1) / C::kTileCols,
              map = blockIdx.z * maps_of_part;
    return {static_cast<int>(blockIdx.x) / across * C::kTileRows,
            static_cast<int>(blockIdx.x) % across * C::kTileCols,
            static_cast<int>(blockIdx.y) * C::kTileOuts, map,
            min(maps_of_part, c_in - map)};
}

// The vector types of a 32-bit element type.
template <typename T>
struct Vector {
    using Pair = float2;
    using Quad = float4;
};
template <>
struct Vector<int> {
    using Pair = int2;
    using Quad = int4;
};

// Reads kCount elements of a row from an address that is aligned to a quad.
template <int kCount, typename T>
__device__ void read_row(T* to, const T* from)
{
    using Pair = typename Vector<T>::Pair;
    using Quad = typename Vector<T>::Quad;
#pragma unroll
    for (int q = 0; q < kCount; q += 4) {
        if (kCount - q > 3) {
            *reinterpret_cast<Quad*>(to + q) = *reinterpret_cast<const Quad*>(from + q);
        } else if (kCount - q == 2) {
            *reinterpret_cast<Pair*>(to + q) = *reinterpret_cast<const Pair*>(from + q);
        } else {
            for (int i = q; i < kCount; ++i) {
                to[i] = from[i];
            }
        }
    }
}

// Stores the part of a row of outputs that is on the map.
template <int kWide, bool kQuads, typename T>
__device__ void write_row(T* to, const T* sum, int col, int n)
{
    if constexpr (kQuads) {
#pragma unroll
        for (int right = 0; right < kWide; right += 4) {
            if (col + right < n) {
                *reinterpret_cast<typename Vector<T>::Quad*>(to + right) = {
                    sum[right], sum[right + 1], sum[right + 2], sum[right + 3]};
            }
        }
    } else {
#pragma unroll
        for (int right = 0; right < kWide; ++right) {
            if (col + right < n) to[right] = sum[right];
        }
    }
}
