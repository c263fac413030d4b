// Idea: a first launch makes the halves, once for all blocks that read them.
// From the rung before: it writes halves of eight input maps of a pixel side by side,
// so that the copy engine brings a step of a tile as the products read it. No warp
// makes halves beside the products, and the ring is twice as long.
// Requires: sm_90a; for the first launch kBlock threads a block and a grid of pixels,
// of eight input maps and of images; for the second a block of kThreads threads; a grid
// of the ranks of a cluster, of tiles of pixels and of groups of output maps; a tensor
// map of the weights, a row for each output map, with boxes of kOuts x kWeightPitch,
// and one of the halves, with boxes of 2 kParts x (kHigh + 2) x 8 kHaloWide; dynamic
// shared memory for a Ring. With several ranks a block has at most two tiles.
#include "../../common/hopper/cluster.cuh"
#include "../../common/hopper/dependent.cuh"
#include "../../common/hopper/tma.cuh"
#include "../../common/hopper/wgmma.cuh"
#include "../../common/warp.cuh"
#include "halves.cuh"

constexpr int kOuts = 64;
constexpr int kDepth = 16;  // input maps of a step
constexpr int kTaps = 9;
constexpr int kWide = 8;
constexpr int kHaloWide = kWide + 2;
// The weights of 8 output maps and of 4 input maps fill all banks.
constexpr int kWeightPitch = kDepth * kTaps + 4;
constexpr int kTapSlots = 4;  // three at least: a warpgroup holds one, skips one
constexpr int kPixelSlots = 6;
constexpr int kChain = 2;  // steps that are summed in tensor cores
constexpr int kLag = 2;
constexpr int kGroups = 2;  // warpgroups that multiply
constexpr int kGroupWarps = 4;
constexpr int kConsumerWarps = kGroups * kGroupWarps;
// Four more, for the copies: registers are handed over by warpgroups.
constexpr int kThreads = (kConsumerWarps + kGroupWarps) * 32;

// Halves of 8 input maps of a pixel: the maps 0, 4, 1, 5, 2, 6, 3, 7 of eight, so that
// the first two are those whose weights the first lane of four has, and so on.
using Eight = uint4;

template <int kParts, int kHigh> struct alignas(128) Ring {
    static constexpr int kPixels = (kHigh + 2) * kHaloWide;
    float taps[kTapSlots][kOuts * kWeightPitch];
    Eight pixels[kPixelSlots][kParts][kDepth / 8][kPixels];
};

// Where a tile of pixels lies.
struct Tile {
    int x, y, image;
};

// Stores two neighbours of a row of n, of columns x, which is even, and x + 1.
__device__ __forceinline__ void store_pair(float* to, float first, float second, int x,
                                           int n)
{
    if (n % 2 == 0 && x < n) {
        *reinterpret_cast<float2*>(to) = make_float2(first, second);
    } else {
        if (x < n) to[0] = first;
        if (x + 1 < n) to[1] = second;
    }
}

__device__ __forceinline__ void add_quad(float4& sum, const float4& value)
{
    sum.x += value.x;
    sum.y += value.y;
    sum.z += value.z;
    sum.w += value.w;
}

// Halves by image, step, part and eight input maps: a plane of pixels for each.
template <int kParts, int kBlock>
__global__ void __launch_bounds__(kBlock)
    convlayer_to_halves(const float* __restrict__ input,
                        const float* __restrict__ weights, Eight* __restrict__ halves,
                        int n, int c_in, int c_out)
{
    start_next_launch();
    // The second launch finds the weights in the L2 cache.
    constexpr int kLine = 32;  // floats
    const size_t lines = static_cast<size_t>(c_in) * c_out * kTaps / kLine;
    const size_t block =
        (static_cast<size_t>(blockIdx.z) * gridDim.y + blockIdx.y) * gridDim.x +
        blockIdx.x;
    const size_t blocks = static_cast<size_t>(gridDim.x) * gridDim.y * gridDim.z;
    for (size_t line = block * kBlock + threadIdx.x; line < lines;
         line += blocks * kBlock) {
        asm volatile("prefetch.global.L2 [%0];" ::"l"(weights + line * kLine));
    }
    const int map = n * n;
    const int pixel = blockIdx.x * kBlock + threadIdx.x;
    if (pixel >= map) return;
    const int eights = (c_in + kDepth - 1) / kDepth * (kDepth / 8);
    const int first_map = blockIdx.y * 8;
    const float* from =
        input + (static_cast<size_t>(blockIdx.z) * c_in + first_map) * map + pixel;
    float value[8];
#pragma unroll
    for (int m = 0; m < 8; ++m) {
        value[m] = first_map + m < c_in ? from[m * static_cast<size_t>(map)] : 0.0f;
    }
    unsigned pair[4][kParts];
#pragma unroll
    for (int p = 0; p < 4; ++p) split_pair<kParts>(pair[p], value[p], value[p + 4]);
    // Of the first part of these eight maps; two eights are a step.
    const size_t step = (static_cast<size_t>(blockIdx.z) * eights + blockIdx.y) / 2;
    const size_t plane = step * (2 * kParts) + blockIdx.y % 2;
#pragma unroll
    for (int p = 0; p < kParts; ++p) {
        halves[(plane + 2 * p) * map + pixel] =
            make_uint4(pair[0][p], pair[1][p], pair[2][p], pair[3][p]);
    }
}

template <int kParts, int kHigh, int kRanks>
__global__ void __cluster_dims__(kRanks, 1, 1) __launch_bounds__(kThreads, 1)
    convlayer_of_halves(const __grid_constant__ TensorMap weights,
                        const __grid_constant__ TensorMap halves,
                        float* __restrict__ output, int n, int c_in, int c_out,
                        int images)
{
    using Shared = Ring<kParts, kHigh>;
    constexpr int kPixels = Shared::kPixels;
    constexpr int kSums = kWide * kHigh / 2;  // of a lane
    constexpr int kSumPitch = kWide * kHigh + 8;
    static_assert(kGroups * kOuts * kSumPitch * sizeof(float) <= sizeof(Shared),
                  "the ring has room for the sums");
    extern __shared__ __align__(128) unsigned char shared_bytes[];
    Shared& ring = *reinterpret_cast<Shared*>(shared_bytes);
    __shared__ Barrier taps_full[kTapSlots], taps_empty[kTapSlots];
    __shared__ Barrier all_read;
    __shared__ Barrier full[kPixelSlots], empty[kPixelSlots];
    const int lane = threadIdx.x % kWarp;
    const int warp = __shfl_sync(~0u, threadIdx.x / kWarp, 0);
    const int rank = kRanks > 1 ? cluster_rank() : 0;
    const int first_out = blockIdx.z * kOuts;
    const size_t map = static_cast<size_t>(n) * n;
    const int steps = (c_in + kDepth - 1) / kDepth;
    const int first = steps * rank / kRanks;
    const int last = steps * (rank + 1) / kRanks;
    const bool resident = last - first <= kTapSlots;
    // Steps that the second warpgroup is behind the first: one stores sums while the
    // other multiplies.
    const int lag = resident ? min(kLag, last - first) : 0;
    const int across = (n + kWide - 1) / kWide;
    const int down = (n + kHigh - 1) / kHigh;
    const int tiles = across * down * images;
    // This block's tiles. Two warpgroups take one each; a last one they take together.
    const int stride = gridDim.y;
    const int own = (tiles - static_cast<int>(blockIdx.y) + stride - 1) / stride;
    const auto tile_at = [&](int at) {
        const int in_image = at % (across * down);
        return Tile{in_image % across * kWide, in_image / across * kHigh,
                    at / (across * down)};
    };
    if (threadIdx.x == 0) {
        mbarrier_init(&all_read, kConsumerWarps);
        for (int s = 0; s < kTapSlots; ++s) {
            mbarrier_init(&taps_full[s], 1);
            mbarrier_init(&taps_empty[s], kConsumerWarps);
        }
        for (int s = 0; s < kPixelSlots; ++s) {
            mbarrier_init(&full[s], 1);
            mbarrier_init(&empty[s], kGroupWarps);
        }
        fence_mbarrier_init();
    }
    __syncthreads();

    float(*sums)[kOuts][kSumPitch] =
        reinterpret_cast<float(*)[kOuts][kSumPitch]>(shared_bytes);
    if (warp >= kConsumerWarps) {  // copies
        release_registers<40>();
        if (warp == kConsumerWarps && lane == 0) {
            const auto copy_taps = [&](int count, int step) {
                const int slot = count % kTapSlots;
                mbarrier_wait(&taps_empty[slot], count / kTapSlots % 2 ^ 1);
                mbarrier_arrive_expect(&taps_full[slot], sizeof(ring.taps[slot]));
                tma_load(ring.taps[slot], weights, step * kDepth * kTaps, first_out,
                         &taps_full[slot]);
            };
            int items = 0;
            const auto copy_pixels = [&](int at, int step) {
                const int slot = items % kPixelSlots;
                const Tile tile = tile_at(at);
                const int plane = (tile.image * steps + step) * (kDepth / 8 * kParts);
                mbarrier_wait(&empty[slot], items / kPixelSlots % 2 ^ 1);
                mbarrier_arrive_expect(&full[slot], sizeof(ring.pixels[slot]));
                tma_load(ring.pixels[slot], halves, (tile.x - 1) * 8, tile.y - 1, plane,
                         &full[slot]);
                ++items;
            };
            const int early = min(last - first, kTapSlots);
            for (int i = 0; i < early; ++i) copy_taps(i, first + i);
            wait_for_launch_before();  // it makes the halves
            int count = 0;
            for (int k = 0; k < own; k += kGroups) {
                const int at = blockIdx.y + k * stride;
                const bool both = k + 1 < own;
                const int number = last - first;
                for (int i = 0; i < number + (both ? lag : 0); ++i) {
                    if (i < number) {
                        if (!resident && count >= early) copy_taps(count, first + i);
                        copy_pixels(at, first + i);
                        ++count;
                    }
                    if (both && i >= lag) copy_pixels(at + stride, first + i - lag);
                }
            }
        }
        __syncwarp();
    } else {
        claim_registers<232>();
        const int group = warp / kGroupWarps;
        const int row = warp % kGroupWarps * 16 + lane / 4;
        int items = 0;      // of the tiles before
        int tap_steps = 0;  // of these tiles
        for (int k = 0; k < own; k += kGroups) {
            const bool both = k + 1 < own;
            const int mine = blockIdx.y + (k + (both ? group : 0)) * stride;
            float total[kSums], part[kSums];
            float crossed[kSums];  // of high and low parts
#pragma unroll
            for (int j = 0; j < kSums; ++j) {
                total[j] = 0.0f;
                crossed[j] = 0.0f;
            }
            int used = 0;
            int held = -1, held_taps = -1;  // slots that products in flight may read
            const auto release = [&]() {
                if (held >= 0 && lane == 0) {
                    mbarrier_arrive(&empty[held]);
                    if (!resident) mbarrier_arrive(&taps_empty[held_taps]);
                }
                held = -1;
            };
            // Tensor cores truncate their sums; few of them are added up there.
            const auto promote = [&]() {
                wgmma_wait<0>();
                __syncwarp();
                release();
#pragma unroll
                for (int j = 0; j < kSums; ++j) total[j] += part[j];
            };
            for (int i = 0; i < last - first; ++i) {
                const int tap_count = resident ? i : tap_steps + i;
                const int tap_slot = tap_count % kTapSlots;
                mbarrier_wait(&taps_full[tap_slot], tap_count / kTapSlots % 2);
                if (!both && i % kGroups != group) {
                    if (!resident && lane == 0) mbarrier_arrive(&taps_empty[tap_slot]);
                    continue;
                }
                // Pixels of the other warpgroup that come before these.
                const int others =
                    group == 0 ? max(0, i - lag) : min(last - first, i + lag + 1);
                const int count = items + i + (both ? others : 0);
                const int slot = count % kPixelSlots;
                mbarrier_wait(&full[slot], count / kPixelSlots % 2);
                const bool anew = used % kChain == 0;
                if (anew && used > 0) promote();
                ++used;
                const float* taps =
                    ring.taps[tap_slot] + row * kWeightPitch + lane % 4 * kTaps;
                // Of the first row of eight pixels, without a shift.
                Descriptor pixels[kParts];
#pragma unroll
                for (int p = 0; p < kParts; ++p) {
                    pixels[p] =
                        describe_pieces(ring.pixels[slot][p], kPixels * sizeof(Eight),
                                        kHaloWide * sizeof(Eight));
                }
                // Weights of the next tap, and of the lane's rows and maps.
                float2 next[4];
                const auto load = [&](int tap) {
#pragma unroll
                    for (int j = 0; j < 4; ++j) {
                        const float* from = taps + j % 2 * 8 * kWeightPitch +
                                            j / 2 * 8 * kTaps + tap;
                        next[j] = make_float2(from[0], from[4 * kTaps]);
                    }
                };
                load(0);
                // A third of them is read by products, a third is made.
                unsigned a[3][kParts][4];
#pragma unroll
                for (int tap = 0; tap < kTaps; ++tap) {
#pragma unroll
                    for (int j = 0; j < 4; ++j) {
                        unsigned parts[kParts];
                        split_pair<kParts>(parts, next[j].x, next[j].y);
#pragma unroll
                        for (int p = 0; p < kParts; ++p) a[tap % 3][p][j] = parts[p];
                    }
                    if (tap + 1 < kTaps) load(tap + 1);
                    const int shift = tap / 3 * kHaloWide + tap % 3;
                    wgmma_fence();
                    wgmma_f16(part, a[tap % 3][0], pixels[0] + shift, !anew || tap > 0);
                    if constexpr (kParts == 2) {
                        wgmma_f16(crossed, a[tap % 3][1], pixels[0] + shift, true);
                        wgmma_f16(crossed, a[tap % 3][0], pixels[1] + shift, true);
                    }
                    wgmma_commit();
                    wgmma_wait<1>();  // the products of the tap before are made
                    if (tap == 0) {
                        __syncwarp();
                        release();
                    }
                }
                held = slot;
                held_taps = tap_slot;
            }
            if (used > 0) promote();
            items += (last - first) * (both ? 2 : 1);
            tap_steps += last - first;
#pragma unroll
            for (int j = 0; j < kSums; ++j) total[j] += crossed[j] / kLowScale;
            if (kRanks == 1 && both) {
                const Tile tile = tile_at(mine);
                const int x = tile.x + lane % 4 * 2;
                const size_t maps = static_cast<size_t>(tile.image) * c_out;
                float* maps_to = output + maps * map + x;
#pragma unroll
                for (int j = 0; j < kSums; j += 2) {
                    const int out = first_out + row + j / 2 % 2 * 8;
                    const int y = tile.y + j / 4;
                    float* to = maps_to + out * map + y * n;
                    if (out < c_out && y < n) {
                        store_pair(to, total[j], total[j + 1], x, n);
                    }
                }
            } else {
                // All reads of the ring are done before sums replace it.
                __syncwarp();
                if (lane == 0) mbarrier_arrive(&all_read);
                mbarrier_wait(&all_read, 0);
#pragma unroll
                for (int j = 0; j < kSums; j += 2) {
                    float* to = &sums[group][row + j / 2 % 2 * 8]
                                     [j / 4 * kWide + lane % 4 * 2];
                    *reinterpret_cast<float2*>(to) =
                        make_float2(total[j], total[j + 1]);
                }
            }
        }
    }
    if (kRanks > 1 || own % kGroups == 1) {
        cluster_sync();  // all sums of the cluster are stored before they are added up
        constexpr int kTilePixels = kWide * kHigh;
        const bool both = own % kGroups == 0;
        for (int g = 0; g < (both ? kGroups : 1); ++g) {
            const Tile tile = tile_at(blockIdx.y + (both ? g : own - 1) * stride);
            float* maps_to = output + static_cast<size_t>(tile.image) * c_out * map;
            constexpr int kQuads = kTilePixels / 4;  // of an output map
            for (int i = rank * kThreads + threadIdx.x; i < kOuts * kQuads;
                 i += kRanks * kThreads) {
                const int pixel = i % kQuads * 4;
                const int row = i / kQuads;
                float4 sum = {};
#pragma unroll
                for (int q = 0; q < kRanks; ++q) {
                    const float4* from = reinterpret_cast<const float4*>(
                        at_rank(&sums[g][row][pixel], q));
                    add_quad(sum, from[0]);
                    if (!both) add_quad(sum, from[kOuts * kSumPitch / 4]);
                }
                const int x = tile.x + pixel % kWide;
                const int y = tile.y + pixel / kWide;
                if (first_out + row < c_out && y < n) {
                    float* to = maps_to + (first_out + row) * map + y * n + x;
                    store_pair(to, sum.x, sum.y, x, n);
                    store_pair(to + 2, sum.z, sum.w, x + 2, n);
                }
            }
        }
        cluster_sync();  // no block ends before its sums have been read
    }
}
