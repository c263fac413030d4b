// The warps of the rungs that make halves in shared memory.
#pragma once

constexpr int kChain = 2;   // steps that are summed in tensor cores
constexpr int kGroups = 2;  // warpgroups that multiply
constexpr int kGroupThreads = 128;
constexpr int kConsumers = kGroups * kGroupThreads;
constexpr int kConsumerWarps = kConsumers / kWarp;
constexpr int kGroupWarps = kGroupThreads / kWarp;
constexpr int kPixelWarps = 7;  // and one for the copies
constexpr int kThreads = kConsumers + (1 + kPixelWarps) * kWarp;
