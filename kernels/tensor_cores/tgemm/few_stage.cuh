// The ring of few_rows: its stages and its threads.
#pragma once

#include "few_tile.cuh"

constexpr int kTileColumns = 64;
constexpr int kGroups = 4, kStages = 3, kThreads = 128 * kGroups;
constexpr int kSumPitch = kTileColumns + 4;  // with it, lanes store to 32 banks

using Stage = StageOf<kTileColumns>;  // each warpgroup has stages of its own
static_assert(kTileRows * kSumPitch * sizeof(float) <= kStages * sizeof(Stage),
              "a warpgroup's ring has room for its sums");
