// Products of a warpgroup with 32, 96 or 104 columns (wgmma, sm_90a): 64 x N sums, each
// of 16 products of halves, for tiles that the widths of wgmma.cuh do not fit.
#pragma once

#include "wgmma_narrow.cuh"

#define NAMES_OF_96                                                                 \
    NAMES_0 ", "                                                                    \
            "%32, %33, %34, %35, %36, %37, %38, %39, "                              \
            "%40, %41, %42, %43, %44, %45, %46, %47"
#define SUMS_OF_96 SUMS_32(0), SUMS_16(32)
#define SHARED_96 "%48, %49, add, 1, 1"
#define SHARED_ADD_96 "%50"
#define HELD_96 "{%48, %49, %50, %51}, %52, add, 1, 1"
#define HELD_ADD_96 "%53"
#define NAMES_OF_104 NAMES_OF_96 ", %48, %49, %50, %51"
#define SUMS_OF_104 SUMS_OF_96, SUMS_4(48)
#define SHARED_104 "%52, %53, add, 1, 1"
#define SHARED_ADD_104 "%54"
#define HELD_104 "{%52, %53, %54, %55}, %56, add, 1, 1"
#define HELD_ADD_104 "%57"

WGMMA(wgmma_f16, 32, "k16.f32.f16.f16", ", 0, 0", ", 0")
WGMMA(wgmma_f16, 96, "k16.f32.f16.f16", ", 0, 0", ", 0")
WGMMA(wgmma_f16, 104, "k16.f32.f16.f16", ", 0, 0", ", 0")
