// The warps of the rung in_place that fill its ring: floats become halves where copies
// brought them.
#pragma once

#include "../../common/hopper/tma.cuh"
#include "halves.cuh"
#include "ring.cuh"

// Floats of 8 input maps, where copies brought them, become their halves.
template <int kParts>
__device__ __forceinline__ void halve_taps(float* floats, int lane)
{
    const float* from = floats + lane / 4 * kWeightPitch + lane % 4 * kTaps;
    unsigned parts[kTaps][kParts];
#pragma unroll
    for (int tap = 0; tap < kTaps; ++tap) {
        split_pair<kParts>(parts[tap], from[tap], from[4 * kTaps + tap]);
    }
    __syncwarp();  // all floats are read before halves replace them
    unsigned* to = reinterpret_cast<unsigned*>(floats) + lane;
#pragma unroll
    for (int tap = 0; tap < kTaps; ++tap) {
#pragma unroll
        for (int p = 0; p < kParts; ++p) to[(tap * 2 + p) * kWarp] = parts[tap][p];
    }
}
template <int kParts, int kApart>
__device__ __forceinline__ void halve_pixels(Eight* place, int lane)
{
    const float* from = reinterpret_cast<const float*>(place) + lane;
    unsigned parts[4][kParts];
#pragma unroll
    for (int p = 0; p < 4; ++p) {
        split_pair<kParts>(parts[p], from[p * kWarp], from[kApart * 4 + p * kWarp]);
    }
    __syncwarp();  // all floats are read before halves replace them
#pragma unroll
    for (int p = 0; p < kParts; ++p) {
        place[p * kApart + lane] =
            make_uint4(parts[0][p], parts[1][p], parts[2][p], parts[3][p]);
    }
}

// What the eight warps do that copy floats and make halves: those of an item, while the
// copies of the next are on their way.
template <int kParts, int kHigh, int kWidth>
__device__ __forceinline__ void fill(Ring<kHigh>& ring, Barriers& barriers,
                                     const Work<kHigh>& work,
                                     const float* __restrict__ weights,
                                     const float* __restrict__ input, int copier,
                                     int lane)
{
    using Shared = Ring<kHigh>;
    constexpr int kApart = kEights * Shared::kPadded;
    // A warp has the same 8 of 16 maps of each of its blocks of 32 pixels.
    const int e = copier % kEights;
    constexpr int kBlocks = kGroups * Shared::kBlocks;
    constexpr int kAtOnce = kCopiers / kEights;
    constexpr int kMine = (kBlocks + kAtOnce - 1) / kAtOnce;
    const auto block = [&](int i) { return copier / kEights + i * kAtOnce; };
    const auto is_mine = [&](int i) {
        return kBlocks % kAtOnce == 0 || block(i) < kBlocks;
    };
    const auto place = [&](int slot, int i) {
        return &ring.pixels[slot][block(i) / Shared::kBlocks][0][e]
                           [block(i) % Shared::kBlocks * kWarp];
    };
    const size_t map = work.map();
    const float* pixels[kMine];  // a lane's, of the first of the maps
    bool wanted[kMine];
    const auto find_pixels = [&](int set) {
#pragma unroll
        for (int i = 0; i < kMine; ++i) {
            const int group = block(i) / Shared::kBlocks;
            const int pixel = block(i) % Shared::kBlocks * kWarp + lane;
            const int tile = work.tile(set, group);
            const int in_image = tile % (work.across * work.down);
            const int x = in_image % work.across * kWide - 1 + pixel % kHaloWide;
            const int y = in_image / work.across * kHigh - 1 + pixel / kHaloWide;
            wanted[i] = pixel < Shared::kPixels && x >= 0 && x < work.n && y >= 0 &&
                        y < work.n &&
                        (set < work.pairs || work.resident || group == 0);
            const size_t image = tile / (work.across * work.down);
            const int step = work.first + work.step(set, 0, group);
            pixels[i] = input;
            if (wanted[i]) {
                pixels[i] += (image * work.c_in + step * kDepth + e * 8) * map +
                             y * work.n + x;
            }
        }
    };
    const int out = work.first_out() + copier * kOutsOfWarp + lane / 4;
    const float* row = weights + (static_cast<size_t>(min(out, work.c_out - 1)) *
                                      work.c_in +
                                  static_cast<size_t>(work.first) * kDepth) *
                                     kTaps;
    const auto copy_taps = [&](float* to, int step) {
        const float* from = row + step * (kDepth * kTaps);
        const int number = (work.c_in - (work.first + step) * kDepth) * kTaps;
        constexpr int kPacks = kRow / kWidth;  // of a row, which four lanes copy
#pragma unroll(kWidth == 4 ? 9 : 1)
        for (int j = 0; j < kEights * kPacks / 4; ++j) {
            const int pack = j * 4 + lane % 4;
            const int half = pack / kPacks * (kOutsOfWarp * kWeightPitch - kRow);
            copy_async<kWidth>(to + half + pack * kWidth, from + pack * kWidth,
                               out < work.c_out && pack * kWidth < number);
        }
    };
    const auto copy_pixels = [&](float* to, const float* from, bool inside, int maps) {
        if (maps >= 8) {
#pragma unroll
            for (int m = 0; m < 8; ++m, from += map) {
                copy_async<1>(to + m / 4 * (kApart * 4) + m % 4 * kWarp, from, inside);
            }
        } else {
#pragma unroll 1
            for (int m = 0; m < 8; ++m) {
                const bool there = inside && m < maps;
                copy_async<1>(to + m / 4 * (kApart * 4) + m % 4 * kWarp,
                              there ? from + m * map : input, there);
            }
        }
    };
    int set = 0, at = 0;  // of the item that is copied next
    const auto copy = [&](int item) {
        const int slot = item % kPixelSlots;
        mbarrier_wait(&barriers.empty[slot], item / kPixelSlots % 2 ^ 1);
        for (int i = 0; i < work.taps(set, at); ++i) {
            const int step = work.step(set, at, 0) + i;
            copy_taps(&ring.taps[work.tap_slot(item, step)][copier][0]
                                [lane / 4 * kWeightPitch],
                      step);
        }
        // After the weights, which come from DRAM and take longer.
        if (at == 0) find_pixels(set);
        const bool shared = work.shared(set);
#pragma unroll
        for (int i = 0; i < kMine; ++i) {
            if (!is_mine(i)) break;
            const int step = work.step(set, at, block(i) / Shared::kBlocks);
            const int maps = work.c_in - (work.first + step) * kDepth - e * 8;
            copy_pixels(reinterpret_cast<float*>(place(slot, i)) + lane, pixels[i],
                        wanted[i], step < work.steps ? maps : 0);
            if (wanted[i]) pixels[i] += map * (kDepth * (shared ? kGroups : 1));
        }
        close_group();
        if (++at == work.items(set)) {
            at = 0;
            ++set;
        }
    };
    int now = 0, i = 0;  // of the item whose halves are made next
    for (int item = -1; now < work.sets; ++item) {
        if (set < work.sets) {
            copy(item + 1);
            if (item < 0) continue;
            wait_for_groups<1>();
        } else {
            wait_for_groups<0>();
        }
        __syncwarp();  // floats of all lanes have arrived
        const int slot = item % kPixelSlots;
        for (int j = 0; j < work.taps(now, i) * kEights; ++j) {
            const int step = work.step(now, i, 0) + j / kEights;
            halve_taps<kParts>(
                ring.taps[work.tap_slot(item, step)][copier][j % kEights], lane);
        }
#pragma unroll
        for (int j = 0; j < kMine; ++j) {
            if (!is_mine(j)) break;
            halve_pixels<kParts, kApart>(place(slot, j), lane);
        }
        fence_proxy_async();
        __syncwarp();
        if (lane == 0) mbarrier_arrive(&barriers.full[slot]);
        if (++i == work.items(now)) {
            i = 0;
            ++now;
        }
    }
}
