// Idea: floats become halves where they lie, and products read both factors there.
// From the rung before: one launch again. Eight warps copy floats into the places of
// their halves and make these; two warpgroups only start products, of a whole step at
// a time, whose factors both come from shared memory. Input maps are split over blocks
// by a second pass, not over a cluster.
// Requires: sm_90a; a block of kThreads threads; a grid of the parts of the input maps,
// of tiles of pixels and of groups of output maps; dynamic shared memory for a Ring;
// kWidth = 4 where c_in is a multiple of 4 and weights are aligned to 16 bytes, else
// kWidth = 1. With one part sums is the output.
#include "../../common/async_copy.cuh"
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
constexpr int kOutsOfWarp = 8;      // output maps that a warp copies
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
// High parts of maps 0 to 7, of 8 to 15, and low parts; or maps 0 to 3, 4 to 7, ...
constexpr int kPieces = 4;

template <int kHigh> struct alignas(128) Ring {
    static constexpr int kPixels = (kHigh + 2) * kHaloWide;
    static constexpr int kBlocks = (kPixels + kWarp - 1) / kWarp;
    static constexpr int kPadded = kBlocks * kWarp;
    // Of a warp's output maps: rows of floats, then halves by tap, part and eight maps.
    float taps[kTapSlots][kOuts / kOutsOfWarp][kOutsOfWarp * kWeightPitch];
    // Of 32 pixels of a piece: 4 rows of floats, then 32 eights.
    Eight pixels[kPixelSlots][kGroups][kPieces][kPadded];
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

template <int kThreadsOfGroup> __device__ __forceinline__ void sync_consumers()
{
    asm volatile("bar.sync 1, %0;" ::"n"(kThreadsOfGroup) : "memory");
}

template <int kParts, int kHigh, int kWidth>
__global__ void __launch_bounds__(kThreads, 1)
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
    const int items = pairs * steps + (odd ? odd_items : 0);
    // What a warpgroup has of an item: a tile, or -1, and a step.
    struct Part {
        int tile, step;
    };
    const auto part_of = [&](int item, int group) {
        const int pair = min(item / steps, pairs);
        const int at = item - pair * steps;
        const int tile = blockIdx.y + pair * kGroups * stride;
        if (pair < pairs) return Part{tile + group * stride, at};
        if (!resident) return Part{group == 0 ? tile : -1, at};
        const int step = at * kGroups + group;
        return Part{step < steps ? tile : -1, step};
    };
    if (threadIdx.x == 0) {
        for (int s = 0; s < kPixelSlots; ++s) {
            mbarrier_init(&full[s], kCopiers);
            mbarrier_init(&empty[s], kConsumers / kWarp);
        }
        fence_mbarrier_init();
    }
    __syncthreads();

    if (warp >= kConsumers / kWarp) {  // copies, and makes halves
        release_registers<48>();
        const int copier = warp - kConsumers / kWarp;
        // Of an item, the steps whose weights come with it: the first of them, and how
        // many. Weights that stay come with the first tiles.
        const auto taps_from = [&](int item) {
            const bool shared = pairs == 0 && resident;
            return resident && item >= (shared ? odd_items : steps) ? steps
                   : shared                                         ? item * kGroups
                                                                    : item % steps;
        };
        const auto taps_number = [&](int item) {
            const bool shared = pairs == 0 && resident;
            return min(steps - taps_from(item), shared ? kGroups : 1);
        };
        const auto tap_slot = [&](int item, int step) {
            return resident ? step : item % kTapSlots;
        };
        const auto copy = [&](int item) {
            const int slot = item % kPixelSlots;
            mbarrier_wait(&empty[slot], item / kPixelSlots % 2 ^ 1);
            for (int i = 0; i < taps_number(item); ++i) {
                const int step = taps_from(item) + i;
                float* to = ring.taps[tap_slot(item, step)][copier];
                constexpr int kPacks = kDepth * kTaps / kWidth;
                const int begin = (first + step) * kDepth * kTaps;
                const int out = first_out + copier * kOutsOfWarp;
#pragma unroll 3
                for (int j = lane; j < kOutsOfWarp * kPacks; j += kWarp) {
                    const int row = j / kPacks;
                    const int at = j % kPacks * kWidth;
                    const bool wanted = out + row < c_out && begin + at < c_in * kTaps;
                    const float* from =
                        weights + static_cast<size_t>(out + row) * c_in * kTaps;
                    copy_async<kWidth>(to + row * kWeightPitch + at,
                                       wanted ? from + begin + at : weights, wanted);
                }
            }
            for (int block = copier; block < kGroups * Shared::kBlocks;
                 block += kCopiers) {
                const int group = block / Shared::kBlocks;
                const int pixel = block % Shared::kBlocks * kWarp + lane;
                const Part part = part_of(item, group);
                const int in_image = part.tile % (across * down);
                const int x = in_image % across * kWide - 1 + pixel % kHaloWide;
                const int y = in_image / across * kHigh - 1 + pixel / kHaloWide;
                const bool inside = part.tile >= 0 && pixel < Shared::kPixels &&
                                    x >= 0 && x < n && y >= 0 && y < n;
                const int first_map = (first + part.step) * kDepth;
                const int image = part.tile / (across * down);
                const float* from =
                    input + (static_cast<size_t>(image) * c_in + first_map) * map +
                    y * n + x;
                float* to = reinterpret_cast<float*>(
                                &ring.pixels[slot][group][0][pixel - lane]) +
                            lane;
#pragma unroll
                for (int m = 0; m < kDepth; ++m) {
                    const bool wanted = inside && first_map + m < c_in;
                    copy_async<1>(to + m / 4 * (kPadded * 4) + m % 4 * kWarp,
                                  wanted ? from + m * map : input, wanted);
                }
            }
            close_group();
        };
        copy(0);
        for (int item = 0; item < items; ++item) {
            if (item + 1 < items) {
                copy(item + 1);
                wait_for_groups<1>();
            } else {
                wait_for_groups<0>();
            }
            __syncwarp();  // floats of all lanes have arrived
            const int slot = item % kPixelSlots;
            for (int i = 0; i < taps_number(item); ++i) {
                const int step = taps_from(item) + i;
                float* floats = ring.taps[tap_slot(item, step)][copier];
                const float* from =
                    floats + lane / 4 * kWeightPitch + lane % 4 * kTaps;
                unsigned parts[kTaps][2][kParts];
#pragma unroll
                for (int tap = 0; tap < kTaps; ++tap) {
#pragma unroll
                    for (int e = 0; e < 2; ++e) {
                        const float* first_of = from + e * 8 * kTaps + tap;
                        split_pair<kParts>(parts[tap][e], first_of[0],
                                           first_of[4 * kTaps]);
                    }
                }
                __syncwarp();  // all floats are read before halves replace them
                unsigned* to = reinterpret_cast<unsigned*>(floats) + lane;
#pragma unroll
                for (int tap = 0; tap < kTaps; ++tap) {
#pragma unroll
                    for (int p = 0; p < kParts; ++p) {
#pragma unroll
                        for (int e = 0; e < 2; ++e) {
                            to[(tap * kPieces + p * 2 + e) * kWarp] = parts[tap][e][p];
                        }
                    }
                }
            }
            for (int block = copier; block < kGroups * Shared::kBlocks;
                 block += kCopiers) {
                const int group = block / Shared::kBlocks;
                Eight* place = &ring.pixels[slot][group][0]
                                           [block % Shared::kBlocks * kWarp];
                const float* from = reinterpret_cast<const float*>(place) + lane;
                unsigned parts[2][4][kParts];
#pragma unroll
                for (int e = 0; e < 2; ++e) {
                    const float* four = from + e * 2 * (kPadded * 4);
#pragma unroll
                    for (int p = 0; p < 4; ++p) {
                        split_pair<kParts>(parts[e][p], four[p * kWarp],
                                           four[kPadded * 4 + p * kWarp]);
                    }
                }
                __syncwarp();  // all floats are read before halves replace them
#pragma unroll
                for (int p = 0; p < kParts; ++p) {
#pragma unroll
                    for (int e = 0; e < 2; ++e) {
                        place[(p * 2 + e) * kPadded + lane] =
                            make_uint4(parts[e][0][p], parts[e][1][p], parts[e][2][p],
                                       parts[e][3][p]);
                    }
                }
            }
            fence_proxy_async();
            __syncwarp();
            if (lane == 0) mbarrier_arrive(&full[slot]);
        }
        return;
    }

    claim_registers<208>();
    const int group = warp / (kGroupThreads / kWarp);
    const int row = warp % (kGroupThreads / kWarp) * 16 + lane / 4;
    sums += blockIdx.x * (map * c_out * images);
    int item = 0;
    for (int k = 0; k < pairs + odd; ++k) {
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
        for (const int end = item + (k < pairs ? steps : odd_items); item < end;
             ++item) {
            const Part mine = part_of(item, group);
            const int slot = item % kPixelSlots;
            mbarrier_wait(&full[slot], item / kPixelSlots % 2);
            if (mine.tile < 0) {
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
            const int tap_slot = resident ? mine.step : item % kTapSlots;
            const Descriptor taps = describe_pieces(
                ring.taps[tap_slot], kOutsOfWarp * sizeof(Eight),
                kOutsOfWarp * kWeightPitch * sizeof(float));
            const Descriptor pixels =
                describe_pieces(ring.pixels[slot][group], kPadded * sizeof(Eight),
                                kHaloWide * sizeof(Eight));
            wgmma_fence();
#pragma unroll
            for (int tap = 0; tap < kTaps; ++tap) {
                // A piece of a tap's weights is kOutsOfWarp eights.
                const Descriptor a = taps + tap * (kPieces * kOutsOfWarp);
                const Descriptor b = pixels + tap / 3 * kHaloWide + tap % 3;
                wgmma_f16(part, a, b, !anew || tap > 0);
                if constexpr (kParts == 2) {
                    wgmma_f16(crossed, a + 2 * kOutsOfWarp, b, true);
                    wgmma_f16(crossed, a, b + 2 * kPadded, true);
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
        const int tile = blockIdx.y + (k * kGroups + (k < pairs ? group : 0)) * stride;
        const int in_image = tile % (across * down);
        const int x = in_image % across * kWide + lane % 4 * 2;
        const int y = in_image / across * kHigh;
        float* maps_to =
            sums + static_cast<size_t>(tile / (across * down)) * c_out * map + x;
        const auto store = [&](int j, float left, float right) {
            const int out = first_out + row + j / 2 % 2 * 8;
            const int below = y + j / 4;
            if (out < c_out && below < n) {
                store_pair(maps_to + out * map + below * n, left, right, x, n);
            }
        };
        if (k < pairs || !resident) {
            if (k < pairs || group == 0) {
#pragma unroll
                for (int j = 0; j < kSums; j += 2) store(j, total[j], total[j + 1]);
            }
        } else {
            // Each warpgroup gives the other half of its sums to the other.
            constexpr int kHalf = kSums / 2;
            float2(*given)[kHalf / 2][kGroupThreads] =
                reinterpret_cast<float2(*)[kHalf / 2][kGroupThreads]>(shared_bytes);
            const int thread = threadIdx.x % kGroupThreads;
            sync_consumers<kConsumers>();  // all products have read the ring
#pragma unroll
            for (int j = 0; j < kHalf; j += 2) {
                given[group][j / 2][thread] = make_float2(
                    group == 0 ? total[j + kHalf] : total[j],
                    group == 0 ? total[j + 1 + kHalf] : total[j + 1]);
            }
            sync_consumers<kConsumers>();  // all sums are there
#pragma unroll
            for (int j = 0; j < kHalf; j += 2) {
                const float2 other = given[1 - group][j / 2][thread];
                const float left = group == 0 ? total[j] : total[j + kHalf];
                const float right = group == 0 ? total[j + 1] : total[j + 1 + kHalf];
                store(group == 0 ? j : j + kHalf, left + other.x, right + other.y);
            }
        }
    }
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
