// The ring of the rungs with a box per step: kRawSlots slots of floats.
#pragma once

template <int kParts, int kStrips, int kHigh> struct alignas(128) Ring {
    // A row of a tile has kStrips strips, each with its own border, so that one group
    // of eight pixels and the next are always kHaloWide apart.
    static constexpr int kRow = kStrips * kHaloWide;
    static constexpr int kPixels = (kHigh + 2) * kRow;
    static_assert(kPixels <= kPixelWarps * kWarp, "a thread has one pixel");
    static constexpr int kRawPitch = (kStrips * kWide + 1 + kRawLeft + 3) / 4 * 4;
    static constexpr int kRaw = (kHigh + 2) * kRawPitch;
    Taps<kParts> taps[kTapSlots];
    Eight pixels[kPixelSlots][kParts][kEights][kPixels];
    float raw[kRawSlots][kDepth * kRaw];
};
