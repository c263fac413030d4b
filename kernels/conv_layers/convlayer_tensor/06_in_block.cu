// Idea: a block makes the halves of its weights too: one launch reads the layer once.
// From the rung before: no launch before this one. Blocks share the input maps as well,
// so that deep layers of few pixels keep all SMs busy; both warpgroups multiply with
// the same weights, each a strip of the tile. A last pass adds up the parts.
// Requires: sm_90a; kThreads threads, a grid of parts of the steps, of tiles and of
// groups of output maps; c_in a multiple of 4; a tensor map of the weights, boxes of
// kRawOuts x kWeightPitch floats; one of the input, boxes of 8 maps x (kHigh + 2) rows
// x kRawPitch floats where n is a multiple of 4, or, with kWhole, of 8 whole maps, n
// even and n * n at most kWholePixels; dynamic shared memory for a Ring. With one part
// sums is the output; else the last pass has kBlock threads a block.
#include "../../common/hopper/dependent.cuh"
#include "../../common/hopper/tma.cuh"
#include "../../common/hopper/wgmma.cuh"
#include "taps.cuh"

constexpr int kWide = 8;    // pixels of a row of a strip, whose eights are contiguous
constexpr int kHigh = 14;   // rows of a tile
constexpr int kGroups = 2;  // warpgroups that multiply, a strip each
constexpr int kHaloWide = kWide + 2;
constexpr int kRow = kGroups * kHaloWide;  // a row of a tile, each strip with a border
constexpr int kPixels = (kHigh + 2) * kRow;
constexpr int kWholePixels = 256;
// Rows of boxes start at multiples of 16 bytes: 4 pixels before the tile, not 1.
constexpr int kRawLeft = 4;
constexpr int kRawPitch = (kGroups * kWide + 1 + kRawLeft + 3) / 4 * 4;
constexpr int kRawMap = (kHigh + 2) * kRawPitch;
// Weights of a step: 4 more than needed, so that those of 8 output maps x 4 input maps
// fill all banks.
constexpr int kWeightPitch = kDepth * kTaps + 4;
constexpr int kRawOuts = kOuts / kEights;  // of half a step
constexpr int kSlots = 2;                  // steps whose halves are kept
constexpr int kChain = 2;                  // steps that are summed in tensor cores
constexpr int kGroupThreads = 128;
constexpr int kConsumers = kGroups * kGroupThreads;
constexpr int kConsumerWarps = kConsumers / kWarp;
constexpr int kGroupWarps = kGroupThreads / kWarp;
constexpr int kSplitters = 7;  // warps that make halves, and one for the copies
constexpr int kThreads = kConsumers + (1 + kSplitters) * kWarp;
constexpr int kSums = kWide * kHigh / 2;  // of a thread

// What is copied for half a step: the weights of half of the output maps, and half of
// the input maps.
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
    Barrier first_read[kEights];  // weights of the first step, by those that multiply
};

// What a block does: steps from `first` to `last`, for every gridDim.y-th tile.
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

// What starts all copies: `half` counts halves of steps, of all of the block's tiles.
template <int kParts, bool kWhole> struct Copies {
    static_assert(kRawOuts == kWarp, "a row of weights for each lane");
    static constexpr unsigned kRawSlots = Ring<kParts, kWhole>::kRawSlots;

    Ring<kParts, kWhole>& ring;
    Barriers& barriers;
    const Work& work;
    const float* __restrict__ weights;
    const TensorMap& boxes;  // of weights
    const TensorMap& input;
    int c_out, lane;

    __device__ __forceinline__ void copy_pixels(Raw<kWhole>& raw, const Tile& tile,
                                                int step, int eight, Barrier* full)
    {
        const int map = tile.image * work.c_in + step * kDepth + eight * 8;
        if constexpr (kWhole) {
            tma_load(raw.pixels, input, 0, map, full);
        } else {
            tma_load(raw.pixels, input, tile.x - kRawLeft, tile.y - 1, map, full);
        }
    }
    // A warp copies half a step. Each lane copies a row of weights, which is
    // contiguous: a box would have rows of 592 bytes, for their pitch, and read more.
    __device__ __forceinline__ void half_step(unsigned half, const Tile& tile, int step)
    {
        const unsigned slot = half % kRawSlots;
        const int eight = half % kEights;
        Raw<kWhole>& raw = ring.raw[slot];
        Barrier* full = &barriers.raw_full[slot];
        const int first_out = blockIdx.z * kOuts + eight * kRawOuts;
        const int outs = min(kRawOuts, max(0, c_out - first_out));
        const int floats = min(kDepth, work.c_in - step * kDepth) * kTaps;
        float* to = raw.weights + lane * kWeightPitch;
        if (outs < kRawOuts || floats < kDepth * kTaps) {
            // What no copy writes, and halves are made of, is zero.
            const int there = lane < outs ? floats : 0;
            for (int i = there; i < kDepth * kTaps; ++i) to[i] = 0.0f;
            fence_proxy_async();
        }
        __syncwarp();
        if (lane == 0) {
            const int pixels = 8 * (kWhole ? work.n * work.n : kRawMap);
            mbarrier_arrive_expect(full, (outs * floats + pixels) * sizeof(float));
            copy_pixels(raw, tile, step, eight, full);
        }
        __syncwarp();  // the barrier expects the bytes
        if (lane < outs) {
            const size_t row = static_cast<size_t>(first_out + lane) * work.c_in;
            bulk_load(to, weights + (row + step * kDepth) * kTaps,
                      floats * sizeof(float), full);
        }
    }
    // The first copies, one a warp: to start 32 of rows takes a warp a thousand cycles.
    __device__ __forceinline__ void begin(int warp)
    {
        const int steps = work.last - work.first;
        const int before = warp / kEights;  // steps
        const int t = blockIdx.y + before / steps * gridDim.y;
        if (warp < kRawSlots && t < work.tiles) {
            half_step(warp, Tile(work, t), work.first + before % steps);
        }
    }
    // Later copies, by one thread: boxes of weights, because rows would take as long to
    // start as products take, and these data come ahead of their use.
    __device__ __forceinline__ void go_on()
    {
        constexpr int kWeights = sizeof(ring.raw[0].weights);
        const int bytes = kWeights + 32 * (kWhole ? work.n * work.n : kRawMap);
        unsigned half = 0;
        for (int t = blockIdx.y; t < work.tiles; t += gridDim.y) {
            const Tile tile(work, t);
            for (int step = work.first; step < work.last; ++step) {
#pragma unroll 1
                for (int eight = 0; eight < kEights; ++eight, ++half) {
                    if (half < kRawSlots) continue;
                    const unsigned slot = half % kRawSlots;
                    Raw<kWhole>& raw = ring.raw[slot];
                    Barrier* full = &barriers.raw_full[slot];
                    mbarrier_wait(&barriers.raw_empty[slot], half / kRawSlots % 2 ^ 1);
                    mbarrier_arrive_expect(full, bytes);
                    tma_load(raw.weights, boxes, step * (kDepth * kTaps),
                             blockIdx.z * kOuts + eight * kRawOuts, full);
                    copy_pixels(raw, tile, step, eight, full);
                }
            }
        }
    }
};

// Halves of the weights of 8 output and 8 input maps: `row` has the lane's output map
// and the first of its two input maps.
template <int kParts>
__device__ __forceinline__ void split_weights(Eight (&to)[kTaps][kParts][kOutsAtOnce],
                                              const float* row, int lane)
{
    unsigned* mine = reinterpret_cast<unsigned*>(to) + lane;
    float2 pair[kTaps];  // loaded before the first store, which none may overtake
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

// The same for one of the units of half a step, of which `raw` has the floats.
template <int kParts, bool kWhole>
__device__ __forceinline__ void split_unit(Taps<kParts>& taps, const Raw<kWhole>& raw,
                                           int eight, int unit, int lane)
{
    const int octet = unit / kEights;
    const float* row = raw.weights + (octet * kOutsAtOnce + lane / 4) * kWeightPitch +
                       (unit % kEights * 8 + lane % 4) * kTaps;
    auto& half = taps.eights[eight * (kRawOuts / kOutsAtOnce) + octet];
    split_weights(half[unit % kEights], row, lane);
}

// Halves of the weights of the first step, by the warps that multiply, a unit each:
// there is nothing to multiply before.
template <int kParts, bool kWhole>
__device__ __forceinline__ void split_first(Ring<kParts, kWhole>& ring,
                                            Barriers& barriers, int warp, int lane)
{
    static_assert(kRawOuts / kOutsAtOnce * kEights == kConsumerWarps, "a unit each");
#pragma unroll 1
    for (int eight = 0; eight < kEights; ++eight) {
        mbarrier_wait(&barriers.raw_full[eight], 0);
        split_unit(ring.taps[0], ring.raw[eight], eight, warp, lane);
        __syncwarp();
        if (lane == 0) mbarrier_arrive(&barriers.first_read[eight]);
    }
    fence_proxy_async();
    asm volatile("bar.sync 1, %0;" ::"n"(kConsumers) : "memory");
}

// Halves of eight input maps of a pixel of the tile. `place` is where the pixel lies in
// a map of floats; it may lie outside of the image, and there may be fewer `maps`.
template <int kParts, bool kWhole>
__device__ __forceinline__ void split_pixel(Eight (&to)[kParts][kEights][kPixels],
                                            const Raw<kWhole>& raw, int eight,
                                            int pixel, int place, bool inside,
                                            int pitch, int maps)
{
    const float* from = raw.pixels + place;
    float value[8];
#pragma unroll
    for (int m = 0; m < 8; ++m) value[m] = inside ? from[m * pitch] : 0.0f;
    if (maps < 8) {
#pragma unroll
        for (int m = 0; m < 8; ++m) {
            if (m >= maps) value[m] = 0.0f;
        }
    }
    Eight eights[kParts];
    make_eights<kParts>(eights, value);
#pragma unroll
    for (int p = 0; p < kParts; ++p) to[p][eight][pixel] = eights[p];
}

// What a warp does that makes halves. Of half a step, the first warp has two units of
// weights; the others have one, which takes as long as 3/2 units of pixels, one of
// these, and take turns at what is left.
template <int kParts, bool kWhole>
__device__ __forceinline__ void split(Ring<kParts, kWhole>& ring, Barriers& barriers,
                                      const Work& work, int warp, int lane)
{
    constexpr unsigned kRawSlots = Ring<kParts, kWhole>::kRawSlots;
    constexpr int kPixelUnits = kPixels / kWarp;
    constexpr int kOthers = kSplitters - 1;
    static_assert(kPixels % kWarp == 0, "each lane has a pixel");
    static_assert(kConsumerWarps == kSplitters + 1, "one warp has two units");
    static_assert(kPixelUnits >= kOthers && kPixelUnits <= 2 * kOthers,
                  "a warp has one or two units of pixels");
    const int pitch = kWhole ? work.n * work.n : kRawMap;
    int turn = warp - 1;  // of the other warps, at the units that are left
    const auto split_half = [&](unsigned half, const Tile& tile, int step) {
        const unsigned slot = half / kEights % kSlots;
        const int eight = half % kEights;
        const Raw<kWhole>& raw = ring.raw[half % kRawSlots];
        mbarrier_wait(&barriers.empty[slot], half / kEights / kSlots % 2 ^ 1);
        mbarrier_wait(&barriers.raw_full[half % kRawSlots], half / kRawSlots % 2);
        const auto pixels = [&](int unit) {
            const int pixel = unit * kWarp + lane;
            const int row = pixel / kRow;
            const int column = pixel % kRow / kHaloWide * kWide + pixel % kHaloWide;
            int place = row * kRawPitch + column + kRawLeft - 1;
            bool inside = true;
            if constexpr (kWhole) {
                const int x = tile.x + column - 1;
                const int y = tile.y + row - 1;
                inside = x >= 0 && x < work.n && y >= 0 && y < work.n;
                place = inside ? y * work.n + x : 0;
            }
            split_pixel<kParts>(ring.pixels[slot], raw, eight, pixel, place, inside,
                                pitch, work.c_in - step * kDepth - eight * 8);
        };
        // Halves of weights of the first step are made by warps that multiply later.
        const bool first = half < kEights;
        int unit = first ? kConsumerWarps : warp;
#pragma unroll 1
        for (; unit < kConsumerWarps; unit += warp == 0 ? kSplitters : kConsumerWarps) {
            split_unit(ring.taps[slot], raw, eight, unit, lane);
        }
        const bool more = turn < kPixelUnits - kOthers && warp > 0;
        unit = first ? warp : warp > 0 ? warp - 1 : kPixelUnits;
        int next = first ? warp + kSplitters : more ? kOthers + turn : kPixelUnits;
#pragma unroll 1
        while (unit < kPixelUnits) {
            pixels(unit);
            unit = next;
            next = kPixelUnits;
        }
        if (first) mbarrier_wait(&barriers.first_read[eight], 0);
        turn += 2 * kOthers - kPixelUnits;
        if (turn >= kOthers) turn -= kOthers;
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

// Where a thread's sums go: of rows of a strip, two pixels of two output maps.
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
    convlayer_in_block(const float* __restrict__ weights,
                       const __grid_constant__ TensorMap boxes,
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
        for (int eight = 0; eight < kEights; ++eight) {
            mbarrier_init(&barriers.first_read[eight], kConsumerWarps);
        }
        fence_mbarrier_init();
    }
    __syncthreads();
    Copies<kParts, kWhole> copies{ring,    barriers, work,  weights,
                                  boxes,   input,    c_out, lane};
    if (warp == kConsumerWarps) {
        release_registers<56>();
        if (lane == 0) copies.go_on();
        __syncwarp();
        return;
    }
    if (warp > kConsumerWarps) {
        release_registers<56>();
        split(ring, barriers, work, warp - kConsumerWarps - 1, lane);
        return;
    }
    copies.begin(warp);
    split_first(ring, barriers, warp, lane);
    claim_registers<200>();
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
            // Tensor cores truncate their sums; few of them are added up there. The
            // warpgroups do so at different times.
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
                    // Starting all 27 takes as long as the products of the step before.
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

// The last pass: a thread adds up what kNumber blocks have of a row of its place.
// For more than one block of an SM, ptxas would keep two or three loads under way.
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
    float4 here[kNumber];  // all loads are under way before the first sum
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
