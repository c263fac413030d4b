// Idea: shifting a descriptor selects a tap: wgmma reads the same halves nine times.
// From the rung before: 128 pixels per warpgroup. The copy engine fills a ring of
// weights and one of pixels; three warps convert pixels to halves in a third ring; two
// warpgroups split weights in registers and multiply. Weights stay if all of them fit.
// Requires: sm_90a; blocks of kThreads threads; a grid of (ranks of a cluster, tiles of
// pixels, groups of output maps); a tensor map of the weights, one row per output map,
// boxes of kOuts x kWeightPitch; a tensor map of the input, boxes of kDepth maps x
// (kHigh + 2) rows x kRawPitch pixels, or, with kWhole, of kDepth whole maps of at most
// kWholePixels; dynamic shared memory for a Ring. If a cluster has several ranks, a
// block has at most two tiles.
#include "../../common/hopper/cluster.cuh"
#include "../../common/hopper/tma.cuh"
#include "../../common/hopper/wgmma.cuh"
#include "../../common/warp.cuh"
#include "halves.cuh"

constexpr int kOuts = 64;
constexpr int kDepth = 16;  // input maps of a step
constexpr int kTaps = 9;
constexpr int kWide = 8;
constexpr int kHaloWide = kWide + 2;
// A box must start at a multiple of 16 bytes: 4 pixels left of the tile, not 1.
constexpr int kRawLeft = 4;
constexpr int kRawPitch = kRawLeft + kWide + 4;
constexpr int kWholePixels = 256;
// With this pitch, the weights of 8 output maps x 4 input maps lie in 32 banks.
constexpr int kWeightPitch = kDepth * kTaps + 4;
constexpr int kTapSlots = 4;  // at least 3: a warpgroup holds one and skips one
constexpr int kPixelSlots = 3;
constexpr int kRawSlots = 2;
constexpr int kChain = 2;  // steps whose products tensor cores add up
constexpr int kGroups = 2;  // warpgroups that multiply
constexpr int kGroupWarps = 4;
constexpr int kConsumerWarps = kGroups * kGroupWarps;
constexpr int kPixelWarps = 3;
constexpr int kThreads = (kConsumerWarps + 1 + kPixelWarps) * 32;
constexpr int kPixelThreads = kPixelWarps * 32;

// Halves of 8 input maps of a pixel, in the order 0, 4, 1, 5, 2, 6, 3, 7: pair t
// belongs to the maps whose weights lane t of four holds.
using Eight = uint4;

template <int kParts, int kHigh, bool kWhole> struct alignas(128) Ring {
    static constexpr int kPixels = (kHigh + 2) * kHaloWide;
    static constexpr int kRaw = kWhole ? kWholePixels : (kHigh + 2) * kRawPitch;
    float taps[kTapSlots][kOuts * kWeightPitch];
    Eight pixels[kPixelSlots][kParts][kDepth / 8][kPixels];
    float raw[kRawSlots][kDepth * kRaw];
};

// The first pixel of a tile, and its image.
struct Tile {
    int x, y, image;
};

template <int kParts, int kHigh, int kRanks, bool kWhole>
__global__ void __cluster_dims__(kRanks, 1, 1) __launch_bounds__(kThreads, 1)
    convlayer_wgmma(const __grid_constant__ TensorMap weights,
                    const __grid_constant__ TensorMap input,
                    float* __restrict__ output, int n, int c_in, int c_out, int images)
{
    using Shared = Ring<kParts, kHigh, kWhole>;
    constexpr int kPixels = Shared::kPixels;
    constexpr int kSums = kWide * kHigh / 2;  // of a lane
    constexpr int kSumPitch = kWide * kHigh + 8;
    static_assert(kGroups * kOuts * kSumPitch * sizeof(float) <= sizeof(Shared),
                  "the ring has room for the sums");
    extern __shared__ __align__(128) unsigned char shared_bytes[];
    Shared& ring = *reinterpret_cast<Shared*>(shared_bytes);
    __shared__ Barrier taps_full[kTapSlots], taps_empty[kTapSlots];
    __shared__ Barrier all_read;
    __shared__ Barrier raw_full[kRawSlots], raw_empty[kRawSlots];
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
    const int across = (n + kWide - 1) / kWide;
    const int down = (n + kHigh - 1) / kHigh;
    const int tiles = across * down * images;
    // Tiles of this block. Each warpgroup computes one of two; both share a last one.
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
        for (int s = 0; s < kRawSlots; ++s) {
            mbarrier_init(&raw_full[s], 1);
            mbarrier_init(&raw_empty[s], kPixelWarps);
        }
        for (int s = 0; s < kPixelSlots; ++s) {
            mbarrier_init(&full[s], kPixelWarps);
            mbarrier_init(&empty[s], kGroupWarps);
        }
        fence_mbarrier_init();
    }
    __syncthreads();

    float(*sums)[kOuts][kSumPitch] =
        reinterpret_cast<float(*)[kOuts][kSumPitch]>(shared_bytes);
    // Calls use(count, step, tile, other tile) for each of this block's steps, with the
    // tiles of the two warpgroups; the second is -1 if both share the first.
    const auto for_each_step = [&](auto use) {
        int count = 0;
        for (int k = 0; k < own; k += kGroups) {
            const int at = blockIdx.y + k * stride;
            for (int step = first; step < last; ++step, ++count) {
                use(count, step, at, k + 1 < own ? at + stride : -1);
            }
        }
    };
    if (warp == kConsumerWarps) {  // starts copies
        release_registers<40>();
        if (lane == 0) {
            int items = 0;
            const auto copy_pixels = [&](int at, int step) {
                const int slot = items % kRawSlots;
                const Tile tile = tile_at(at);
                const int map_number = tile.image * c_in + step * kDepth;
                mbarrier_wait(&raw_empty[slot], items / kRawSlots % 2 ^ 1);
                const int floats = kDepth * (kWhole ? n * n : Shared::kRaw);
                mbarrier_arrive_expect(&raw_full[slot], floats * sizeof(float));
                if constexpr (kWhole) {
                    tma_load(ring.raw[slot], input, 0, map_number, &raw_full[slot]);
                } else {
                    tma_load(ring.raw[slot], input, tile.x - kRawLeft, tile.y - 1,
                             map_number, &raw_full[slot]);
                }
                ++items;
            };
            for_each_step([&](int count, int step, int at, int beside) {
                const int slot = count % kTapSlots;
                if (!resident || count < last - first) {
                    mbarrier_wait(&taps_empty[slot], count / kTapSlots % 2 ^ 1);
                    mbarrier_arrive_expect(&taps_full[slot], sizeof(ring.taps[slot]));
                    tma_load(ring.taps[slot], weights, step * kDepth * kTaps, first_out,
                             &taps_full[slot]);
                }
                copy_pixels(at, step);
                if (beside >= 0) copy_pixels(beside, step);
            });
        }
        __syncwarp();
    } else if (warp > kConsumerWarps) {  // converts pixels to halves
        release_registers<40>();
        const int thread = threadIdx.x - (kConsumerWarps + 1) * kWarp;
        constexpr int kEach = (kPixels + kPixelThreads - 1) / kPixelThreads;
        int items = 0;
        const auto split_pixels = [&](int at, int step) {
            const Tile tile = tile_at(at);
            const int maps = c_in - step * kDepth;
            const int raw_slot = items % kRawSlots;
            const int slot = items % kPixelSlots;
            mbarrier_wait(&empty[slot], items / kPixelSlots % 2 ^ 1);
            mbarrier_wait(&raw_full[raw_slot], items / kRawSlots % 2);
            const int pitch = kWhole ? n * n : Shared::kRaw;  // of a map
#pragma unroll
            for (int j = 0; j < kEach; ++j) {
                const int pixel = thread + j * kPixelThreads;
                if (pixel < kPixels) {
                    const int right = pixel % kHaloWide;
                    const int below = pixel / kHaloWide;
                    const int x = tile.x - 1 + right;
                    const int y = tile.y - 1 + below;
                    // The copy engine fills boxes beyond the image with zeros.
                    const bool inside = !kWhole || (x >= 0 && x < n && y >= 0 && y < n);
                    const int place =
                        kWhole ? y * n + x : below * kRawPitch + kRawLeft - 1 + right;
                    const float* from = ring.raw[raw_slot] + (inside ? place : 0);
#pragma unroll
                    for (int e = 0; e < kDepth / 8; ++e) {
                        float value[8];
#pragma unroll
                        for (int m = 0; m < 8; ++m) {
                            value[m] = inside && e * 8 + m < maps
                                           ? from[(e * 8 + m) * pitch]
                                           : 0.0f;
                        }
                        unsigned pair[4][kParts];
#pragma unroll
                        for (int p = 0; p < 4; ++p) {
                            split_pair<kParts>(pair[p], value[p], value[p + 4]);
                        }
#pragma unroll
                        for (int p = 0; p < kParts; ++p) {
                            ring.pixels[slot][p][e][pixel] = make_uint4(
                                pair[0][p], pair[1][p], pair[2][p], pair[3][p]);
                        }
                    }
                }
            }
            fence_proxy_async();
            __syncwarp();
            if (lane == 0) {
                mbarrier_arrive(&raw_empty[raw_slot]);
                mbarrier_arrive(&full[slot]);
            }
            ++items;
        };
        for_each_step([&](int, int step, int at, int beside) {
            split_pixels(at, step);
            if (beside >= 0) split_pixels(beside, step);
        });
    } else {
        claim_registers<232>();
        const int group = warp / kGroupWarps;
        const int row = warp % kGroupWarps * 16 + lane / 4;
        int items = 0;      // items of the previous tiles
        int tap_steps = 0;  // steps of the previous tiles
        for (int k = 0; k < own; k += kGroups) {
            const bool both = k + 1 < own;
            const int mine = blockIdx.y + (k + (both ? group : 0)) * stride;
            float total[kSums], part[kSums];
            float crossed[kSums];  // products of a high and a low part
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
            // Tensor cores truncate sums, so they only add up kChain steps.
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
                const int count = items + (both ? 2 * i + group : i);
                const int slot = count % kPixelSlots;
                mbarrier_wait(&full[slot], count / kPixelSlots % 2);
                const bool anew = used % kChain == 0;
                if (anew && used > 0) promote();
                ++used;
                const float* taps =
                    ring.taps[tap_slot] + row * kWeightPitch + lane % 4 * kTaps;
                // Descriptors of the first eight pixels, before a tap shifts them.
                Descriptor pixels[kParts];
#pragma unroll
                for (int p = 0; p < kParts; ++p) {
                    pixels[p] =
                        describe_pieces(ring.pixels[slot][p], kPixels * sizeof(Eight),
                                        kHaloWide * sizeof(Eight));
                }
                // For three taps: products may read two while the third is made.
                unsigned a[3][kParts][4];
#pragma unroll
                for (int tap = 0; tap < kTaps; ++tap) {
#pragma unroll
                    for (int j = 0; j < 4; ++j) {
                        const float* from = taps + j % 2 * 8 * kWeightPitch +
                                            j / 2 * 8 * kTaps + tap;
                        unsigned parts[kParts];
                        split_pair<kParts>(parts, from[0], from[4 * kTaps]);
#pragma unroll
                        for (int p = 0; p < kParts; ++p) a[tap % 3][p][j] = parts[p];
                    }
                    const int shift = tap / 3 * kHaloWide + tap % 3;
                    wgmma_fence();
                    wgmma_f16(part, a[tap % 3][0], pixels[0] + shift, !anew || tap > 0);
                    if constexpr (kParts == 2) {
                        wgmma_f16(crossed, a[tap % 3][1], pixels[0] + shift, true);
                        wgmma_f16(crossed, a[tap % 3][0], pixels[1] + shift, true);
                    }
                    wgmma_commit();
                    wgmma_wait<1>();  // the previous tap's products are done
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
                    if (out < c_out && y < n && x < n) {
                        *reinterpret_cast<float2*>(maps_to + out * map + y * n) =
                            make_float2(total[j], total[j + 1]);
                    }
                }
            } else {
                // Sums replace the ring after all warps have read it.
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
            for (int i = rank * kThreads + threadIdx.x; i < kOuts * kTilePixels;
                 i += kRanks * kThreads) {
                const int pixel = i % kTilePixels;
                const int row = i / kTilePixels;
                float sum = 0.0f;
#pragma unroll
                for (int q = 0; q < kRanks; ++q) {
                    const float* from = at_rank(&sums[g][row][pixel], q);
                    sum += from[0];
                    if (!both) sum += from[kOuts * kSumPitch];
                }
                const int x = tile.x + pixel % kWide;
                const int y = tile.y + pixel / kWide;
                if (first_out + row < c_out && x < n && y < n) {
                    maps_to[(first_out + row) * map + y * n + x] = sum;
                }
            }
        }
        cluster_sync();  // no block ends before its sums have been read
    }
}
