// Products of a warpgroup with 32 columns (wgmma, sm_90a): 64 x 32 sums, each of 8
// products of TF32. The first factor is in shared memory or in registers, the second in
// shared memory.
#pragma once

#include "wgmma.cuh"

#define NAMES_OF_32                                                                 \
    "%0, %1, %2, %3, %4, %5, %6, %7, "                                              \
    "%8, %9, %10, %11, %12, %13, %14, %15"
#define SUMS_OF_32 SUMS_16(0)
#define SHARED_32 "%16, %17, add, 1, 1"
#define SHARED_ADD_32 "%18"
#define HELD_32 "{%16, %17, %18, %19}, %20, add, 1, 1"
#define HELD_ADD_32 "%21"

WGMMA(wgmma_tf32, 32, "k8.f32.tf32.tf32", "", "")
