// Idea: blocks convert their weights too, so that one launch reads the layer once.
// From the rung before: the first launch is gone. Blocks divide the input maps as well,
// so that deep layers of few pixels keep all SMs busy. Both warpgroups multiply the
// same weights, each with its strip of the tile. A last launch adds up the parts.
// Requires: sm_90a; blocks of kThreads threads; a grid of (parts of the steps, tiles,
// groups of output maps); c_in a multiple of 4; a tensor map of the weights, boxes of
// kRawOuts x kWeightPitch floats; one of the input, boxes of 8 maps x (kHigh + 2) rows
// x kRawPitch floats if n is a multiple of 4, or, with kWhole, of 8 whole maps if n is
// even and n * n at most kWholePixels; dynamic shared memory for a Ring. With one part,
// `sums` is the output; otherwise the last launch has blocks of kBlock threads.
#include "../../common/hopper/dependent.cuh"
#include "../../common/hopper/tma.cuh"
#include "../../common/hopper/wgmma.cuh"
#include "taps.cuh"

constexpr int kWide = 8;    // pixels in a row of a strip; their eights are contiguous
constexpr int kHigh = 14;   // rows of a tile
constexpr int kGroups = 2;  // warpgroups that multiply, a strip each
constexpr int kHaloWide = kWide + 2;
constexpr int kRow = kGroups * kHaloWide;  // a row of a tile, each strip with a border
constexpr int kPixels = (kHigh + 2) * kRow;
constexpr int kWholePixels = 256;
// A box must start at a multiple of 16 bytes: 4 pixels left of the tile, not 1.
constexpr int kRawLeft = 4;
constexpr int kRawPitch = (kGroups * kWide + 1 + kRawLeft + 3) / 4 * 4;
constexpr int kRawMap = (kHigh + 2) * kRawPitch;
// Weights of an output map in a step, and 4 more: with this pitch, the weights of 8
// output maps x 4 input maps lie in 32 banks.
constexpr int kWeightPitch = kDepth * kTaps + 4;
constexpr int kRawOuts = kOuts / kEights;  // output maps of half a step
constexpr int kSlots = 2;                  // steps whose halves are kept
constexpr int kChain = 2;                  // steps whose products tensor cores add up
constexpr int kGroupThreads = 128;
constexpr int kConsumers = kGroups * kGroupThreads;
constexpr int kConsumerWarps = kConsumers / kWarp;
constexpr int kGroupWarps = kGroupThreads / kWarp;
constexpr int kSplitters = 7;  // warps that make halves; one more starts copies
constexpr int kThreads = kConsumers + (1 + kSplitters) * kWarp;
constexpr int kSums = kWide * kHigh / 2;  // of a thread

// The copies of half a step: the weights of half of the output maps, and the pixels of
// half of the input maps.
template <bool kWhole> struct alignas(128) Raw {
    float weights[kRawOuts * kWeightPitch];
    float pixels[8 * (kWhole ? kWholePixels : kRawMap)];
};

template <int kParts, bool kWhole> struct alignas(128) Ring {
    static constexpr int kRawSlots = kWhole ? 4 : 3;
    Taps<kParts> taps[kSlots];
    Eight pixels[kSlots][kParts][kEights][kPixels];
    Raw<kWhole> raw[kRawSlots];
};

struct Barriers {
    Barrier raw_full[4], raw_empty[4];
    Barrier full[kSlots], empty[kSlots];
};

// The work of a block: steps from `first` to `last` of every gridDim.y-th tile.
struct Work {
    int n, c_in, first, last, across, down, tiles;

    __device__ __forceinline__ Work(int n, int c_in, int images, int each)
        : n(n), c_in(c_in)
    {
        first = blockIdx.x * each;
        last = min(first + each, (c_in + kDepth - 1) / kDepth);
        across = (n + kGroups * kWide - 1) / (kGroups * kWide);
        down = (n + kHigh - 1) / kHigh;
        tiles = across * down * images;
    }
};

// The first pixel of a tile.
struct Tile {
    int x, y, image;

    __device__ __forceinline__ Tile(const Work& work, unsigned tile)
    {
        const unsigned above = tile / work.across;
        x = (tile - above * work.across) * (kGroups * kWide);
        image = above / work.down;
        y = (above - image * work.down) * kHigh;
    }
};

// Starts all copies; one thread calls it.
template <int kParts, bool kWhole>
__device__ __forceinline__ void copy(Ring<kParts, kWhole>& ring, Barriers& barriers,
                                     const Work& work, const TensorMap& weights,
                                     const TensorMap& input)
{
    constexpr unsigned kRawSlots = Ring<kParts, kWhole>::kRawSlots;
    const int pixel_bytes = 4 * 8 * (kWhole ? work.n * work.n : kRawMap);
    unsigned half = 0;  // counts halves of steps
    for (int t = blockIdx.y; t < work.tiles; t += gridDim.y) {
        const Tile tile(work, t);
        for (int step = work.first; step < work.last; ++step) {
            const int map = tile.image * work.c_in + step * kDepth;
#pragma unroll 1
            for (int eight = 0; eight < kEights; ++eight, ++half) {
                const unsigned slot = half % kRawSlots;
                Raw<kWhole>& raw = ring.raw[slot];
                Barrier* full = &barriers.raw_full[slot];
                mbarrier_wait(&barriers.raw_empty[slot], half / kRawSlots % 2 ^ 1);
                mbarrier_arrive_expect(full, sizeof(raw.weights) + pixel_bytes);
                tma_load(raw.weights, weights, step * (kDepth * kTaps),
                         blockIdx.z * kOuts + eight * kRawOuts, full);
                if constexpr (kWhole) {
                    tma_load(raw.pixels, input, 0, map + eight * 8, full);
                } else {
                    tma_load(raw.pixels, input, tile.x - kRawLeft, tile.y - 1,
                             map + eight * 8, full);
                }
            }
        }
    }
}

// Converts the weights of 8 output and 8 input maps to halves. `row` points to those of
// the lane's output map and of the first of its two input maps.
template <int kParts>
__device__ __forceinline__ void split_weights(Eight (&to)[kTaps][kParts][kOutsAtOnce],
                                              const float* row, int lane)
{
    unsigned* mine = reinterpret_cast<unsigned*>(to) + lane;
    float2 pair[kTaps];  // all loads come first: none can move above a store
#pragma unroll
    for (int tap = 0; tap < kTaps; ++tap) {
        pair[tap] = make_float2(row[tap], row[4 * kTaps + tap]);
    }
#pragma unroll
    for (int tap = 0; tap < kTaps; ++tap) {
        unsigned parts[kParts];
        split_pair<kParts>(parts, pair[tap].x, pair[tap].y);
#pragma unroll
        for (int p = 0; p < kParts; ++p) mine[(tap * kParts + p) * kWarp] = parts[p];
    }
}

// Converts a warp's share of the weights and pixels to halves.
template <int kParts, bool kWhole>
__device__ __forceinline__ void split(Ring<kParts, kWhole>& ring, Barriers& barriers,
                                      const Work& work, int warp, int lane)
{
    constexpr unsigned kRawSlots = Ring<kParts, kWhole>::kRawSlots;
    constexpr int kOctets = kRawOuts / kOutsAtOnce;
    constexpr int kWeightUnits = kOctets * kEights;
    constexpr int kPixelUnits = kPixels / kWarp;
    static_assert(kPixels % kWarp == 0, "each lane has a pixel");
    const auto split_half = [&](unsigned half, const Tile& tile, int step) {
        const unsigned slot = half / kEights % kSlots;
        const int eight = half % kEights;
        const Raw<kWhole>& raw = ring.raw[half % kRawSlots];
        mbarrier_wait(&barriers.empty[slot], half / kEights / kSlots % 2 ^ 1);
        mbarrier_wait(&barriers.raw_full[half % kRawSlots], half / kRawSlots % 2);
        int unit = warp;
        for (; unit < kWeightUnits; unit += kSplitters) {
            const int octet = unit / kEights;
            const float* row =
                raw.weights + (octet * kOutsAtOnce + lane / 4) * kWeightPitch +
                (unit % kEights * 8 + lane % 4) * kTaps;
            auto& octets = ring.taps[slot].eights;
            split_weights(octets[eight * kOctets + octet][unit % kEights], row, lane);
        }
        const int maps = work.c_in - step * kDepth - eight * 8;
        for (; unit < kWeightUnits + kPixelUnits; unit += kSplitters) {
            const int pixel = (unit - kWeightUnits) * kWarp + lane;
            const int row = pixel / kRow;
            const int column = pixel % kRow / kHaloWide * kWide + pixel % kHaloWide;
            int pitch = kRawMap;
            int place = row * kRawPitch + column + kRawLeft - 1;
            bool inside = true;
            if constexpr (kWhole) {
                const int x = tile.x + column - 1;
                const int y = tile.y + row - 1;
                inside = x >= 0 && x < work.n && y >= 0 && y < work.n;
                pitch = work.n * work.n;
                place = y * work.n + x;
            }
            float value[8];
#pragma unroll
            for (int m = 0; m < 8; ++m) {
                value[m] = inside && m < maps ? raw.pixels[m * pitch + place] : 0.0f;
            }
            Eight eights[kParts];
            make_eights<kParts>(eights, value);
#pragma unroll
            for (int p = 0; p < kParts; ++p) {
                ring.pixels[slot][p][eight][pixel] = eights[p];
            }
        }
        fence_proxy_async();
        __syncwarp();
        if (lane == 0) {
            mbarrier_arrive(&barriers.raw_empty[half % kRawSlots]);
            if (eight == kEights - 1) mbarrier_arrive(&barriers.full[slot]);
        }
    };
    unsigned half = 0;
    for (int t = blockIdx.y; t < work.tiles; t += gridDim.y) {
        const Tile tile(work, t);
        for (int step = work.first; step < work.last; ++step) {
#pragma unroll 1
            for (int eight = 0; eight < kEights; ++eight) {
                split_half(half++, tile, step);
            }
        }
    }
}

// The place of a thread's sums: two pixels of two output maps in each row of a strip.
struct Place {
    float* to;
    size_t to_second;
    int n, rows;
    bool first, second;

    __device__ __forceinline__ Place(float* output, int n, int c_out, int outs,
                                     const Tile& tile, int thread)
        : n(n), rows(n - tile.y)
    {
        const int lane = thread % kWarp;
        const int warp = thread / kWarp;
        const int out = outs * kOuts + warp % kGroupWarps * 16 + lane / 4;
        const int x = tile.x + warp / kGroupWarps * kWide + lane % 4 * 2;
        const size_t map = static_cast<size_t>(n) * n;
        first = x < n && out < c_out;
        second = x < n && out + 8 < c_out;
        to = output + (static_cast<size_t>(tile.image) * c_out + out) * map +
             tile.y * n + x;
        to_second = 8 * map;
    }
    __device__ __forceinline__ void next() { to += n; }
    __device__ __forceinline__ void store(const float4& sum, int row) const
    {
        if (first && row < rows) {
            *reinterpret_cast<float2*>(to) = make_float2(sum.x, sum.y);
        }
        if (second && row < rows) {
            *reinterpret_cast<float2*>(to + to_second) = make_float2(sum.z, sum.w);
        }
    }
};

template <int kParts, bool kWhole>
__global__ void __launch_bounds__(kThreads, 1)
    convlayer_in_block(const __grid_constant__ TensorMap weights,
                       const __grid_constant__ TensorMap input,
                       float* __restrict__ sums, int n, int c_in, int c_out, int images,
                       int steps_of_part)
{
    using Shared = Ring<kParts, kWhole>;
    extern __shared__ __align__(128) unsigned char shared_bytes[];
    Shared& ring = *reinterpret_cast<Shared*>(shared_bytes);
    __shared__ Barriers barriers;
    const int lane = threadIdx.x % kWarp;
    const int warp = __shfl_sync(~0u, threadIdx.x / kWarp, 0);
    const Work work(n, c_in, images, steps_of_part);
    if (threadIdx.x == kConsumers) {
        for (int s = 0; s < Shared::kRawSlots; ++s) {
            mbarrier_init(&barriers.raw_full[s], 1);
            mbarrier_init(&barriers.raw_empty[s], kSplitters);
        }
        for (int s = 0; s < kSlots; ++s) {
            mbarrier_init(&barriers.full[s], kSplitters);
            mbarrier_init(&barriers.empty[s], kConsumerWarps);
        }
        fence_mbarrier_init();
    }
    __syncthreads();
    if (warp == kConsumerWarps) {
        release_registers<40>();
        if (lane == 0) copy(ring, barriers, work, weights, input);
        __syncwarp();
        return;
    }
    if (warp > kConsumerWarps) {
        release_registers<40>();
        split(ring, barriers, work, warp - kConsumerWarps - 1, lane);
        return;
    }
    claim_registers<216>();
    const int group = warp / kGroupWarps;
    unsigned item = 0;
    for (int tile = blockIdx.y; tile < work.tiles; tile += gridDim.y) {
        float total[kSums], part[kSums], crossed[kSums];
#pragma unroll
        for (int j = 0; j < kSums; ++j) {
            total[j] = 0.0f;
            part[j] = 0.0f;
            crossed[j] = 0.0f;
        }
        int held = -1;  // a slot that products in flight may read
        const auto release = [&]() {
            __syncwarp();
            if (held >= 0 && lane == 0) mbarrier_arrive(&barriers.empty[held]);
            held = -1;
        };
        const int steps = work.last - work.first;
        for (int used = 0; used < steps; ++used, ++item) {
            const unsigned slot = item % kSlots;
            // Tensor cores truncate sums, so every kChain steps their sums are added to
            // float32 totals. The two warpgroups do so in different steps.
            const bool anew = used > 0 && (used + group) % kChain == 0;
            if (anew) {
                wgmma_wait<0>();
                release();
#pragma unroll
                for (int j = 0; j < kSums; ++j) total[j] += part[j];
            }
            mbarrier_wait(&barriers.full[slot], item / kSlots % 2);
            const Taps<kParts>& taps = ring.taps[slot];
            const Descriptor rows = describe_pieces(&taps, sizeof(taps.eights[0][0]),
                                                    sizeof(taps.eights[0]));
            const Descriptor pixels = describe_pieces(
                ring.pixels[slot], kPixels * sizeof(Eight), kRow * sizeof(Eight));
            wgmma_fence();
#pragma unroll
            for (int tap = 0; tap < kTaps; ++tap) {
                const Descriptor a = rows + tap * (kParts * kOutsAtOnce);
                const Descriptor b =
                    pixels + group * kHaloWide + tap / 3 * kRow + tap % 3;
                wgmma_f16(part, a, b, !anew || tap > 0);
                if constexpr (kParts == 2) {
                    wgmma_f16(crossed, a + kOutsAtOnce, b, true);
                    wgmma_f16(crossed, a, b + kEights * kPixels, true);
                }
                if (tap == 0) {
                    // Starting all 27 takes as long as the previous step's products.
                    wgmma_commit();
                    wgmma_wait<1>();
                    release();
                }
            }
            wgmma_commit();
            held = slot;
        }
        wgmma_wait<0>();
        release();
#pragma unroll
        for (int j = 0; j < kSums; ++j) {
            total[j] = (total[j] + part[j]) + crossed[j] / kLowScale;
        }
        const auto sum = [&](int j) {
            return make_float4(total[j], total[j + 1], total[j + 2], total[j + 3]);
        };
        if (gridDim.x > 1) {
            start_next_launch();
            const size_t block =
                (blockIdx.x * work.tiles + tile) * gridDim.z + blockIdx.z;
            float4* to = reinterpret_cast<float4*>(sums) +
                         block * (kHigh * kConsumers) + threadIdx.x;
#pragma unroll
            for (int row = 0; row < kHigh; ++row) to[row * kConsumers] = sum(row * 4);
        } else {
            Place place(sums, n, c_out, blockIdx.z, Tile(work, tile), threadIdx.x);
#pragma unroll
            for (int row = 0; row < kHigh; ++row, place.next()) {
                place.store(sum(row * 4), row);
            }
        }
    }
}

// The last launch: a thread adds up the sums of kNumber blocks for its place in a row.
// Bounds for one block per SM: for more, ptxas keeps only two or three loads in flight.
template <int kBlock, int kNumber>
__global__ void __launch_bounds__(kBlock, 1)
    convlayer_add_parts(const float4* __restrict__ parts, float* __restrict__ output,
                        int n, int c_in, int c_out, int images)
{
    static_assert(kConsumers % kBlock == 0, "all threads have the same row");
    const Work work(n, c_in, images, 1);
    const int groups = (c_out + kOuts - 1) / kOuts;
    const size_t blocks = static_cast<size_t>(work.tiles) * groups;
    const size_t count = blocks * (kHigh * kConsumers);
    const float4* from = parts + static_cast<size_t>(blockIdx.x) * kBlock + threadIdx.x;
    const int thread = blockIdx.x * kBlock % kConsumers + threadIdx.x;
    const int row = blockIdx.x * kBlock / kConsumers % kHigh;
    const int block = blockIdx.x * kBlock / kConsumers / kHigh;
    const Tile tile(work, block / groups);
    Place place(output, n, c_out, block % groups, tile, thread);
    wait_for_launch_before();
    float4 here[kNumber];  // all loads are in flight before the first addition
#pragma unroll
    for (int part = 0; part < kNumber; ++part) here[part] = from[part * count];
    float4 sum = {};
#pragma unroll
    for (int part = 0; part < kNumber; ++part) {
        sum.x += here[part].x;
        sum.y += here[part].y;
        sum.z += here[part].z;
        sum.w += here[part].w;
    }
    place.to += row * n;
    place.store(sum, row);
}
