// The ring of few_rows: its tile, its stages and its threads.
#pragma once

constexpr int kTileRows = 32, kTileColumns = 64, kDepth = 32;  // of k, in a stage
constexpr int kGroups = 4, kStages = 3, kThreads = 128 * kGroups;
constexpr int kSumPitch = kTileColumns + 4;  // with it, lanes store to 32 banks

// Swizzled boxes of 32 x 32 floats. Splitting A replaces it by its high parts, with low
// parts behind them. Each warpgroup has stages of its own.
struct alignas(1024) Stage {
    float b[kTileColumns / 32][kDepth * 32];
    float a[kTileRows * kDepth];
    float a_low[kTileRows * kDepth];
};
static_assert(kTileRows * kSumPitch * sizeof(float) <= kStages * sizeof(Stage),
              "a warpgroup's ring has room for its sums");
