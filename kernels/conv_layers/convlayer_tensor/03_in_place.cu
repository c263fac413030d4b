// Idea: floats become halves where they lie, and products read both factors there.
// From the rung before: eight warps copy floats into the places of their halves and
// make these, weights once; two warpgroups only start products, of a whole step at a
// time, whose factors both come from shared memory.
// Requires: sm_90a; a block of kThreads threads; a grid of the parts of the input maps,
// of tiles of pixels and of groups of output maps; dynamic shared memory for a Ring;
// kWidth = 4 where c_in is a multiple of 4 and weights are aligned to 16 bytes, else
// kWidth = 1; kPair = 2 where n is even. The parts are those of a cluster of kRanks, of
// which a block has at most two tiles; or, with one rank, those of a second pass. With
// one part, or several ranks, sums is the output.
#include "../../common/async_copy.cuh"
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
constexpr int kEights = kDepth / 8;
constexpr int kOutsOfWarp = 8;  // output maps whose weights a warp copies
constexpr int kRow = 8 * kTaps;  // weights of an output map and of 8 input maps
// The weights of 8 output maps and of 4 input maps fill all banks.
constexpr int kWeightPitch = kRow + 4;
constexpr int kTapSlots = 4;  // steps whose weights stay
constexpr int kPixelSlots = 3;
constexpr int kChain = 2;   // steps that are summed in tensor cores
constexpr int kGroups = 2;  // warpgroups that multiply
constexpr int kGroupThreads = 128;
constexpr int kConsumers = kGroups * kGroupThreads;
constexpr int kCopiers = 8;  // warps, one for each kOutsOfWarp of kOuts
constexpr int kThreads = kConsumers + kCopiers * kWarp;
static_assert(kCopiers * kOutsOfWarp == kOuts, "a warp has its own output maps");

// Halves of 8 input maps of a pixel: the maps 0, 4, 1, 5, 2, 6, 3, 7 of eight.
using Eight = uint4;

template <int kHigh> struct alignas(128) Ring {
    static constexpr int kPixels = (kHigh + 2) * kHaloWide;
    static constexpr int kBlocks = (kPixels + kWarp - 1) / kWarp;
    static constexpr int kPadded = kBlocks * kWarp;
    // Of 8 input maps and a warp's output maps: rows of floats; then halves, the eights
    // of kOutsOfWarp maps for each tap and part.
    float taps[kTapSlots][kCopiers][kEights][kOutsOfWarp * kWeightPitch];
    // Of 32 pixels and of 8 maps: 4 rows of floats here, 4 in the second half; then
    // 32 eights of high parts here, of low parts there.
    Eight pixels[kPixelSlots][kGroups][2][kEights][kPadded];
};

// Stores two neighbours of a row of n, of columns x, which is even, and x + 1.
template <int kPair>
__device__ __forceinline__ void store_pair(float* to, const float2& pair, int x, int n)
{
    if constexpr (kPair == 2) {
        if (x < n) *reinterpret_cast<float2*>(to) = pair;
    } else {
        if (x < n) to[0] = pair.x;
        if (x + 1 < n) to[1] = pair.y;
    }
}

template <int kThreadsOfGroup> __device__ __forceinline__ void sync_consumers()
{
    asm volatile("bar.sync 1, %0;" ::"n"(kThreadsOfGroup) : "memory");
}

template <int kParts, int kHigh, int kWidth, int kPair, int kRanks>
__global__ void __cluster_dims__(kRanks, 1, 1) __launch_bounds__(kThreads, 1)
    convlayer_in_place(const float* __restrict__ weights,
                       const float* __restrict__ input, float* __restrict__ sums, int n,
                       int c_in, int c_out, int images)
{
    using Shared = Ring<kHigh>;
    constexpr int kPadded = Shared::kPadded;
    constexpr int kSums = kWide * kHigh / 2;  // of a lane
    extern __shared__ __align__(128) unsigned char shared_bytes[];
    Shared& ring = *reinterpret_cast<Shared*>(shared_bytes);
    __shared__ Barrier full[kPixelSlots], empty[kPixelSlots];
    start_next_launch();
    const int lane = threadIdx.x % kWarp;
    const int warp = __shfl_sync(~0u, threadIdx.x / kWarp, 0);
    const int first_out = blockIdx.z * kOuts;
    const size_t map = static_cast<size_t>(n) * n;
    const int all_steps = (c_in + kDepth - 1) / kDepth;
    const int first = all_steps * blockIdx.x / gridDim.x;
    const int steps = all_steps * (blockIdx.x + 1) / gridDim.x - first;
    const bool resident = steps <= kTapSlots;
    const int across = (n + kWide - 1) / kWide;
    const int down = (n + kHigh - 1) / kHigh;
    const int tiles = across * down * images;
    // This block's tiles. Two warpgroups take one each. A last one they share, step by
    // step, if the weights of two steps are there; else the first takes it.
    const int stride = gridDim.y;
    const int own = (tiles - static_cast<int>(blockIdx.y) + stride - 1) / stride;
    const int pairs = own / kGroups;
    const bool odd = own % kGroups != 0;
    const int odd_items = resident ? (steps + kGroups - 1) / kGroups : steps;
    const int sets = pairs + odd;
    const auto items_of = [&](int set) { return set < pairs ? steps : odd_items; };
    if (threadIdx.x == 0) {
        for (int s = 0; s < kPixelSlots; ++s) {
            mbarrier_init(&full[s], kCopiers);
            mbarrier_init(&empty[s], kConsumers / kWarp);
        }
        fence_mbarrier_init();
    }
    __syncthreads();
    sums += kRanks > 1 ? 0 : blockIdx.x * (map * c_out * images);
    // Where a thread's sums of a tile belong.
    struct Place {
        int out, x, y;
        float* to;
    };
    const auto place = [&](int tile, int thread) {
        const int in_image = tile % (across * down);
        const int x = in_image % across * kWide + thread % 4 * 2;
        const int y = in_image / across * kHigh;
        const int out = first_out + thread / kWarp * 16 + thread % kWarp / 4;
        const size_t image = tile / (across * down);
        return Place{out, x, y, sums + (image * c_out + out) * map + y * n + x};
    };
    // Sums that are added up: of two warpgroups, or of a cluster.
    using Given = float2[kSums / 2][kGroupThreads];
    Given* given = reinterpret_cast<Given*>(shared_bytes);
    static_assert(kGroups * sizeof(Given) <= sizeof(Shared), "the ring has room");

    if (warp >= kConsumers / kWarp) {  // copies, and makes halves
        release_registers<48>();
        const int copier = warp - kConsumers / kWarp;
        // Of an item, the steps whose weights come with it: the first of them, and how
        // many. Weights that stay come with the first tiles.
        const auto taps_from = [&](int set, int at) {
            return set < pairs || !resident ? at : at * kGroups;
        };
        const auto taps_number = [&](int set, int at) {
            if (resident && set > 0) return 0;
            return set < pairs || !resident ? 1 : min(kGroups, steps - at * kGroups);
        };
        const auto tap_slot = [&](int item, int step) {
            return resident ? step : item % kTapSlots;
        };
        // A warp has the same 8 of 16 maps of each of its blocks of pixels.
        const int e = copier % kEights;
        constexpr int kBlocks = kGroups * Shared::kBlocks;
        constexpr int kAtOnce = kCopiers / kEights;
        constexpr int kMine = (kBlocks + kAtOnce - 1) / kAtOnce;
        const auto is_mine = [&](int i) {
            return kBlocks % kAtOnce == 0 || copier / kEights + i * kAtOnce < kBlocks;
        };
        // Where the floats of a lane's pixel go, or their halves.
        const auto place_of = [&](int slot, int i) {
            const int block = copier / kEights + i * kAtOnce;
            return &ring.pixels[slot][block / Shared::kBlocks][0][e]
                               [block % Shared::kBlocks * kWarp];
        };
        const float* pixels[kMine];  // of a lane, in the first of the maps
        bool wanted[kMine];
        const auto find_pixels = [&](int set) {
#pragma unroll
            for (int i = 0; i < kMine; ++i) {
                const int block = copier / kEights + i * kAtOnce;
                const int group = block / Shared::kBlocks;
                const int pixel = block % Shared::kBlocks * kWarp + lane;
                const int tile =
                    blockIdx.y +
                    (set * kGroups + (set < pairs ? group : 0)) * stride;
                const int in_image = tile % (across * down);
                const int x = in_image % across * kWide - 1 + pixel % kHaloWide;
                const int y = in_image / across * kHigh - 1 + pixel / kHaloWide;
                wanted[i] = pixel < Shared::kPixels && x >= 0 && x < n && y >= 0 &&
                            y < n && (set < pairs || resident || group == 0);
                // The warpgroups' steps of a shared tile differ.
                const int apart = set < pairs || !resident ? 0 : group;
                const size_t map_number =
                    static_cast<size_t>(tile / (across * down)) * c_in +
                    (first + apart) * kDepth + e * 8;
                pixels[i] = input;
                if (wanted[i]) pixels[i] += map_number * map + y * n + x;
            }
        };
        const int out = first_out + copier * kOutsOfWarp + lane / 4;
        const float* row_from =
            weights + (static_cast<size_t>(min(out, c_out - 1)) * c_in +
                       static_cast<size_t>(first) * kDepth) *
                          kTaps;
        int set = 0, at = 0;  // of the item that is copied next
        const auto copy = [&](int item) {
            const int slot = item % kPixelSlots;
            mbarrier_wait(&empty[slot], item / kPixelSlots % 2 ^ 1);
            if (at == 0) find_pixels(set);
            for (int i = 0; i < taps_number(set, at); ++i) {
                const int step = taps_from(set, at) + i;
                float* to = &ring.taps[tap_slot(item, step)][copier][0]
                                      [lane / 4 * kWeightPitch];
                const float* from = row_from + step * (kDepth * kTaps);
                const int maps = c_in - (first + step) * kDepth;
                // Four lanes copy a row.
                constexpr int kPacks = kRow / kWidth;
#pragma unroll(kWidth == 4 ? 9 : 1)
                for (int j = 0; j < kEights * kPacks / 4; ++j) {
                    const int pack = j * 4 + lane % 4;
                    const int half = pack / kPacks * (kOutsOfWarp * kWeightPitch - kRow);
                    copy_async<kWidth>(to + half + pack * kWidth, from + pack * kWidth,
                                       out < c_out && pack * kWidth < maps * kTaps);
                }
            }
            const bool shared = set == pairs && resident;
#pragma unroll
            for (int i = 0; i < kMine; ++i) {
                if (!is_mine(i)) break;
                const int group = (copier / kEights + i * kAtOnce) / Shared::kBlocks;
                const int step = shared ? at * kGroups + group : at;
                const int maps =
                    step < steps ? c_in - (first + step) * kDepth - e * 8 : 0;
                float* to = reinterpret_cast<float*>(place_of(slot, i)) + lane;
                constexpr int kApart = kEights * kPadded * 4;  // floats
                const float* from = pixels[i];
                if (maps >= 8) {
#pragma unroll
                    for (int m = 0; m < 8; ++m, from += map) {
                        copy_async<1>(to + m / 4 * kApart + m % 4 * kWarp, from,
                                      wanted[i]);
                    }
                } else {
#pragma unroll 1
                    for (int m = 0; m < 8; ++m) {
                        const bool there = wanted[i] && m < maps;
                        copy_async<1>(to + m / 4 * kApart + m % 4 * kWarp,
                                      there ? from + m * map : input, there);
                    }
                }
                if (wanted[i]) pixels[i] += map * (kDepth * (shared ? kGroups : 1));
            }
            close_group();
            if (++at == items_of(set)) {
                at = 0;
                ++set;
            }
        };
        int now = 0, i = 0;  // of the item whose halves are made next
        for (int item = -1; now < sets; ++item) {
            if (set < sets) {
                copy(item + 1);
                if (item < 0) continue;
                wait_for_groups<1>();
            } else {
                wait_for_groups<0>();
            }
            {
                __syncwarp();  // floats of all lanes have arrived
                const int slot = item % kPixelSlots;
                for (int j = 0; j < taps_number(now, i) * kEights; ++j) {
                    const int step = taps_from(now, i) + j / kEights;
                    float* floats =
                        ring.taps[tap_slot(item, step)][copier][j % kEights];
                    const float* from =
                        floats + lane / 4 * kWeightPitch + lane % 4 * kTaps;
                    unsigned parts[kTaps][kParts];
#pragma unroll
                    for (int tap = 0; tap < kTaps; ++tap) {
                        split_pair<kParts>(parts[tap], from[tap],
                                           from[4 * kTaps + tap]);
                    }
                    __syncwarp();  // all floats are read before halves replace them
                    unsigned* to = reinterpret_cast<unsigned*>(floats) + lane;
#pragma unroll
                    for (int tap = 0; tap < kTaps; ++tap) {
#pragma unroll
                        for (int p = 0; p < kParts; ++p) {
                            to[(tap * 2 + p) * kWarp] = parts[tap][p];
                        }
                    }
                }
#pragma unroll
                for (int j = 0; j < kMine; ++j) {
                    if (!is_mine(j)) break;
                    Eight* place = place_of(slot, j);
                    const float* from = reinterpret_cast<const float*>(place) + lane;
                    unsigned parts[4][kParts];
#pragma unroll
                    for (int p = 0; p < 4; ++p) {
                        split_pair<kParts>(parts[p], from[p * kWarp],
                                           from[kEights * kPadded * 4 + p * kWarp]);
                    }
                    __syncwarp();  // all floats are read before halves replace them
#pragma unroll
                    for (int p = 0; p < kParts; ++p) {
                        place[p * (kEights * kPadded) + lane] = make_uint4(
                            parts[0][p], parts[1][p], parts[2][p], parts[3][p]);
                    }
                }
                fence_proxy_async();
                __syncwarp();
                if (lane == 0) mbarrier_arrive(&full[slot]);
            }
            if (++i == items_of(now)) {
                i = 0;
                ++now;
            }
        }
    } else {
    claim_registers<208>();
    const int group = warp / (kGroupThreads / kWarp);
    const int thread = threadIdx.x % kGroupThreads;
    int item = 0;
    for (int k = 0; k < sets; ++k) {
        float total[kSums], part[kSums];
        float crossed[kSums];  // of high and low parts
#pragma unroll
        for (int j = 0; j < kSums; ++j) {
            total[j] = 0.0f;
            part[j] = 0.0f;
            crossed[j] = 0.0f;
        }
        int used = 0;
        int held = -1;  // a slot that products in flight may read
        const auto release = [&]() {
            __syncwarp();
            if (held >= 0 && lane == 0) mbarrier_arrive(&empty[held]);
            held = -1;
        };
        for (int i = 0; i < items_of(k); ++i, ++item) {
            const int step = k < pairs || !resident ? i : i * kGroups + group;
            const bool idle = step >= steps || (k == pairs && !resident && group > 0);
            const int slot = item % kPixelSlots;
            mbarrier_wait(&full[slot], item / kPixelSlots % 2);
            if (idle) {
                wgmma_wait<0>();
                release();
                held = slot;
                continue;
            }
            // Tensor cores truncate their sums; few of them are added up there. The
            // warpgroups do so at different times.
            const bool anew = used > 0 && (used + group) % kChain == 0;
            if (anew) {
                wgmma_wait<0>();
                release();
#pragma unroll
                for (int j = 0; j < kSums; ++j) total[j] += part[j];
            }
            const int tap_slot = resident ? step : item % kTapSlots;
            const Descriptor taps =
                describe_pieces(ring.taps[tap_slot], sizeof(ring.taps[0][0][0]),
                                sizeof(ring.taps[0][0]));
            const Descriptor pixels =
                describe_pieces(ring.pixels[slot][group], kPadded * sizeof(Eight),
                                kHaloWide * sizeof(Eight));
            wgmma_fence();
#pragma unroll
            for (int tap = 0; tap < kTaps; ++tap) {
                const Descriptor a = taps + tap * (2 * kOutsOfWarp);
                const Descriptor b = pixels + tap / 3 * kHaloWide + tap % 3;
                wgmma_f16(part, a, b, !anew || tap > 0);
                if constexpr (kParts == 2) {
                    wgmma_f16(crossed, a + kOutsOfWarp, b, true);
                    wgmma_f16(crossed, a, b + kEights * kPadded, true);
                }
            }
            wgmma_commit();
            ++used;
            wgmma_wait<1>();  // the products of the step before are made
            release();
            held = slot;
        }
        wgmma_wait<0>();
        release();
#pragma unroll
        for (int j = 0; j < kSums; ++j) {
            total[j] = (total[j] + part[j]) + crossed[j] / kLowScale;
        }
        if (kRanks == 1 && (k < pairs || !resident)) {
            const Place mine = place(
                blockIdx.y + (k * kGroups + (k < pairs ? group : 0)) * stride, thread);
            const bool stores = k < pairs || group == 0;
            float* to = mine.to;
#pragma unroll
            for (int j = 0; j < kSums; j += 4, to += n) {
                if (!stores || mine.y + j / 4 >= n) continue;
#pragma unroll
                for (int r = 0; r < 2; ++r) {
                    if (mine.out + r * 8 < c_out) {
                        store_pair<kPair>(
                            to + r * 8 * map,
                            make_float2(total[j + 2 * r], total[j + 2 * r + 1]), mine.x,
                            n);
                    }
                }
            }
        } else {
            sync_consumers<kConsumers>();  // all products have read the ring
#pragma unroll
            for (int j = 0; j < kSums; j += 2) {
                given[group][j / 2][thread] = make_float2(total[j], total[j + 1]);
            }
        }
    }
    }
    if (kRanks == 1 && !(odd && resident)) return;
    // All sums are stored before they are added up.
    if (kRanks > 1) {
        cluster_sync();
    } else {
        __syncthreads();
    }
    const int rank = kRanks > 1 ? cluster_rank() : 0;
    const int tiles_left = odd ? 1 : kGroups;
    for (int g = 0; g < tiles_left; ++g) {
        const int tile = blockIdx.y + ((sets - 1) * kGroups + g) * stride;
        for (int i = rank * kThreads + threadIdx.x; i < kSums / 2 * kGroupThreads;
             i += kRanks * kThreads) {
            const int pair = i / kGroupThreads;
            const int thread = i % kGroupThreads;
            float2 sum = {};
#pragma unroll
            for (int q = 0; q < kRanks; ++q) {
                const Given* there = kRanks > 1 ? at_rank(given, q) : given;
                const float2 first_of = there[g][pair][thread];
                sum.x += first_of.x;
                sum.y += first_of.y;
                if (odd) {
                    const float2 second_of = there[1][pair][thread];
                    sum.x += second_of.x;
                    sum.y += second_of.y;
                }
            }
            const Place mine = place(tile, thread);
            const int r = pair % 2;
            if (mine.out + r * 8 < c_out && mine.y + pair / 2 < n) {
                store_pair<kPair>(mine.to + r * 8 * map + pair / 2 * n, sum, mine.x, n);
            }
        }
    }
    if (kRanks > 1) cluster_sync();  // no block ends before its sums have been read
}

// output[i] = parts[0][i] + parts[1][i] + ..., kWidth neighbouring elements a thread.
template <int kBlock, int kWidth>
__global__ void __launch_bounds__(kBlock)
    convlayer_add_late(const float* __restrict__ parts, float* __restrict__ output,
                       size_t count, int number)
{
    wait_for_launch_before();
    const size_t at =
        (static_cast<size_t>(blockIdx.x) * kBlock + threadIdx.x) * kWidth;
    if (at >= count) return;
    float sum[kWidth] = {};
#pragma unroll 8
    for (int part = 0; part < number; ++part) {
        const float* from = parts + part * count + at;
        if constexpr (kWidth == 4) {
            const float4 quad = *reinterpret_cast<const float4*>(from);
            sum[0] += quad.x;
            sum[1] += quad.y;
            sum[2] += quad.z;
            sum[3] += quad.w;
        } else {
            sum[0] += *from;
        }
    }
    if constexpr (kWidth == 4) {
        *reinterpret_cast<float4*>(output + at) = {sum[0], sum[1], sum[2], sum[3]};
    } else {
        output[at] = sum[0];
    }
}
