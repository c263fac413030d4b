// Steps without a test: one later test finds points that have gone outside.
#pragma once
#include "escape.cuh"

// Advance z by one step as `step` does, with the same bits: doubling is exact, so it
// can be part of a multiply-add.
__device__ __forceinline__ Point advance(Point z, Point c)
{
    const float re2 = __fmul_rn(z.re, z.re);
    const float im2 = __fmul_rn(z.im, z.im);
    const float product = __fmul_rn(z.re, z.im);
    return {__fadd_rn(__fsub_rn(re2, im2), c.re), __fmaf_rn(2.0f, product, c.im)};
}

__device__ __forceinline__ float squared(Point z)
{
    return __fadd_rn(__fmul_rn(z.re, z.re), __fmul_rn(z.im, z.im));
}

// True if z is within distance 2 of the origin. NaN is outside.
__device__ __forceinline__ bool inside(Point z)
{
    return squared(z) <= 4.0f;
}

// True if z stays outside once it is outside, so that a test after many steps finds it.
// With |c| <= 1.975, |z| >= 2 grows to 2.025 or more, and no rounding takes it back
// below 2. With c nearer to the circle of radius 2, rounding might: then false.
__device__ __forceinline__ bool stays_outside(Point c)
{
    return squared(c) <= 3.9f;
}
