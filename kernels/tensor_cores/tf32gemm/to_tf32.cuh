// Rounding to TF32, which has 10 bits after the point: to nearest, ties away from zero.
#pragma once

__device__ __forceinline__ unsigned to_tf32(float x)
{
    unsigned y;
    asm volatile("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x));
    return y;
}
