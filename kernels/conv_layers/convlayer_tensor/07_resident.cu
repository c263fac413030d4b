// Idea: weights that stay become halves where they lie, so no launch comes before.
// From the rung before: as in whole_steps, a block goes from tile to tile. Floats of
// weights arrive where their halves will be; idle warps that multiply make those of the
// first step, and the warps that make halves of pixels those of the others.
// Requires: sm_90a; kThreads threads, n a multiple of 4, c_in at most
// kTapSlots * kDepth, a grid of tiles and of groups of output maps; a tensor map of the
// weights, rows for each output map of 8 input maps (kPieces = 1) or of 4
// (kPieces = 2), which c_in is a multiple of, boxes of kOutsAtOnce x kPieces rows, or
// any tensor map (kPieces = 0); one of the input, boxes of kDepth maps x (kHigh + 2)
// rows x kRawPitch floats; dynamic shared memory for a Ring.
#include "../../common/hopper/tma.cuh"
#include "../../common/hopper/wgmma.cuh"
#include "taps.cuh"

constexpr int kWide = 8;  // pixels of a row of a strip, whose eights are contiguous
constexpr int kHaloWide = kWide + 2;
// Rows of boxes start at multiples of 16 bytes: 4 pixels before the tile, not 1.
constexpr int kRawLeft = 4;
constexpr int kTapSlots = 4;    // steps, whose weights stay
constexpr int kPixelSlots = 3;  // each warpgroup holds one
constexpr int kRawSlots = 3;
constexpr int kChain = 2;   // steps that are summed in tensor cores
constexpr int kGroups = 2;  // warpgroups that multiply
constexpr int kGroupThreads = 128;
constexpr int kConsumers = kGroups * kGroupThreads;
constexpr int kConsumerWarps = kConsumers / kWarp;
constexpr int kGroupWarps = kGroupThreads / kWarp;
constexpr int kPixelWarps = 7;  // and one for the copies
constexpr int kThreads = kConsumers + (1 + kPixelWarps) * kWarp;
constexpr int kOctets = kOuts / kOutsAtOnce;

// Weights of 8 output and 8 input maps: floats as they are copied, then their halves.
template <int kParts> union Unit {
    float rows[kOutsAtOnce][8 * kTaps];
    Eight eights[kTaps][kParts][kOutsAtOnce];
};
template <int kParts> struct Weights {
    Unit<kParts> units[kOctets][kEights];
};

template <int kParts, int kStrips, int kHigh> struct alignas(128) Ring {
    // A row of a tile is kStrips strips with a border each, so that eight pixels of a
    // strip and the next eight are kHaloWide apart.
    static constexpr int kRow = kStrips * kHaloWide;
    static constexpr int kPixels = (kHigh + 2) * kRow;
    static_assert(kPixels <= kPixelWarps * kWarp, "a thread has one pixel");
    static constexpr int kRawPitch = (kStrips * kWide + 1 + kRawLeft + 3) / 4 * 4;
    static constexpr int kRaw = (kHigh + 2) * kRawPitch;
    Weights<kParts> taps[kTapSlots];
    Eight pixels[kPixelSlots][kParts][kEights][kPixels];
    float raw[kRawSlots][kDepth * kRaw];
};

struct Barriers {
    Barrier taps_raw[kTapSlots], taps_full[kTapSlots];
    Barrier raw_full[kRawSlots], raw_empty[kRawSlots];
    Barrier full[kPixelSlots], empty[kPixelSlots];
};

#include "fused_products.cuh"
#include "steps.cuh"

template <int kParts>
__device__ __forceinline__ Descriptor describe_taps(const Weights<kParts>& taps)
{
    return describe_pieces(&taps, sizeof(taps.units[0][0]), sizeof(taps.units[0]));
}
template <int kStrips, int kHigh>
__device__ __forceinline__ void release_taps(Barriers&, const Work<kStrips, kHigh>&,
                                             int)
{
    // They stay.
}

// A thread starts the copies of the weights of 8 output maps, for all steps.
template <int kParts, int kPieces, class Shared>
__device__ __forceinline__ void copy_weights(Shared& ring, Barriers& barriers,
                                             int steps, const TensorMap& boxes,
                                             int octet)
{
    for (int step = 0; step < steps; ++step) {
        Barrier* full = &barriers.taps_raw[step];
        mbarrier_arrive_expect(full, kEights * sizeof(Unit<kParts>::rows));
        for (int eight = 0; eight < kEights; ++eight) {
            tma_load(&ring.taps[step].units[octet][eight], boxes, 0,
                     (step * kEights + eight) * kPieces,
                     blockIdx.y * kOuts + octet * kOutsAtOnce, full);
        }
    }
}

// A warp does the same where rows of weights are no multiples of 16 bytes.
template <class Shared>
__device__ __forceinline__ void load_weights(Shared& ring, Barriers& barriers,
                                             int steps, int c_in, int c_out,
                                             const float* __restrict__ weights,
                                             int octet, int lane)
{
    constexpr int kRow = 8 * kTaps;  // of a unit
    constexpr int kLong = kEights * kRow;
    constexpr int kEach = (kLong + kWarp - 1) / kWarp;
    const int first = blockIdx.y * kOuts + octet * kOutsAtOnce;
    for (int step = 0; step < steps; ++step) {
        const int left = (c_in - step * kDepth) * kTaps;  // in a row
        const float* from = weights + static_cast<size_t>(first) * c_in * kTaps +
                            step * (kDepth * kTaps) + lane;
        // All loads are under way before the first store.
        float value[kOutsAtOnce][kEach];
#pragma unroll
        for (int out = 0; out < kOutsAtOnce; ++out, from += c_in * kTaps) {
#pragma unroll
            for (int j = 0; j < kEach; ++j) {
                const bool there = first + out < c_out && j * kWarp + lane < left;
                value[out][j] = there ? from[j * kWarp] : 0.0f;
            }
        }
#pragma unroll
        for (int j = 0; j < kEach; ++j) {
            const int at = j * kWarp + lane;
            if (at >= kLong) continue;
            auto& rows = ring.taps[step].units[octet][at / kRow].rows;
#pragma unroll
            for (int out = 0; out < kOutsAtOnce; ++out) {
                rows[out][at % kRow] = value[out][j];
            }
        }
        __syncwarp();
        if (lane == 0) mbarrier_arrive(&barriers.taps_raw[step]);
    }
}

// A warp makes halves in the place of floats: each lane, of an output map and the maps
// lane % 4 and lane % 4 + 4.
template <int kParts>
__device__ __forceinline__ void split_weights(Unit<kParts>& unit, int lane)
{
    const float* row = unit.rows[lane / 4] + lane % 4 * kTaps;
    float2 pair[kTaps];
#pragma unroll
    for (int tap = 0; tap < kTaps; ++tap) {
        pair[tap] = make_float2(row[tap], row[4 * kTaps + tap]);
    }
    __syncwarp();  // all floats are in registers
    unsigned* to = reinterpret_cast<unsigned*>(unit.eights) + lane;
#pragma unroll
    for (int tap = 0; tap < kTaps; ++tap) {
        unsigned parts[kParts];
        split_pair<kParts>(parts, pair[tap].x, pair[tap].y);
#pragma unroll
        for (int p = 0; p < kParts; ++p) to[(tap * kParts + p) * kWarp] = parts[p];
    }
}

// Every `stride`-th unit of a step's weights, from `first` on, for a warp.
template <class Shared>
__device__ __forceinline__ void split_step(Shared& ring, Barriers& barriers, int step,
                                           int first, int stride, int lane)
{
    mbarrier_wait(&barriers.taps_raw[step], 0);
    for (int unit = first; unit < kOctets * kEights; unit += stride) {
        split_weights(ring.taps[step].units[unit / kEights][unit % kEights], lane);
    }
    fence_proxy_async();
    __syncwarp();
    if (lane == 0) mbarrier_arrive(&barriers.taps_full[step]);
}

template <int kParts, int kStrips, int kHigh, int kPieces>
__global__ void __launch_bounds__(kThreads, 1)
    convlayer_resident(const float* __restrict__ weights,
                       const __grid_constant__ TensorMap boxes,
                       const __grid_constant__ TensorMap input,
                       float* __restrict__ output, int n, int c_in, int c_out,
                       int images)
{
    using Shared = Ring<kParts, kStrips, kHigh>;
    extern __shared__ __align__(128) unsigned char shared_bytes[];
    Shared& ring = *reinterpret_cast<Shared*>(shared_bytes);
    __shared__ Barriers barriers;
    const int lane = threadIdx.x % kWarp;
    const int warp = __shfl_sync(~0u, threadIdx.x / kWarp, 0);
    const Work<kStrips, kHigh> work(n, c_in, c_out, images);
    if (threadIdx.x == 0) {
        for (int s = 0; s < kTapSlots; ++s) {
            mbarrier_init(&barriers.taps_raw[s], kConsumerWarps);
            const int warps = s == 0 ? kConsumerWarps : kPixelWarps;
            mbarrier_init(&barriers.taps_full[s], warps);
        }
        for (int s = 0; s < kRawSlots; ++s) {
            mbarrier_init(&barriers.raw_full[s], 1);
            mbarrier_init(&barriers.raw_empty[s], kPixelWarps);
        }
        for (int s = 0; s < kPixelSlots; ++s) {
            mbarrier_init(&barriers.full[s], kPixelWarps);
            mbarrier_init(&barriers.empty[s], kGroupWarps);
        }
        fence_mbarrier_init();
    }
    __syncthreads();
    if (warp == kConsumerWarps) {
        release_registers<40>();
        if (lane == 0) {
            PixelCopies<kStrips, kHigh> pixels{work, input};
            while (pixels.more()) pixels.next(ring, barriers);
        }
        __syncwarp();
        return;
    }
    if (warp > kConsumerWarps) {
        release_registers<40>();
        const int own = warp - kConsumerWarps - 1;
        PixelSplits<kParts, kStrips, kHigh> pixels(own * kWarp + lane);
        for (Item at; at.first < work.own; at.next(work.own, work.steps)) {
            // Of a step, after the pixels of the step before.
            if (at.first == 0 && at.beside == 0 && at.step > 0) {
                split_step(ring, barriers, at.step, own, kPixelWarps, lane);
            }
            pixels.next(ring, barriers, work.c_in - at.step * kDepth);
        }
        return;
    }
    if constexpr (kPieces > 0) {
        if (lane == 0) {
            copy_weights<kParts, kPieces>(ring, barriers, work.steps, boxes, warp);
        }
        __syncwarp();
    } else {
        load_weights(ring, barriers, work.steps, c_in, c_out, weights, warp, lane);
    }
    split_step(ring, barriers, 0, warp, kConsumerWarps, lane);
    claim_registers<216>();
    multiply(ring, barriers, work, output);
}
