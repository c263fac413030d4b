// One step of z <- z^2 + c in float32. Each operation is rounded separately, so that
// all kernels and NumPy agree bit for bit.
constexpr int kMaxSteps = 256;

struct Point {
    float re, im;
};

// Advance z by one step; return whether it was still within distance 2 of the origin.
// NaN is outside.
__device__ __forceinline__ bool step(Point& z, Point c)
{
    const float re2 = __fmul_rn(z.re, z.re);
    const float im2 = __fmul_rn(z.im, z.im);
    const float product = __fmul_rn(z.re, z.im);
    z = {
        __fadd_rn(__fsub_rn(re2, im2), c.re),
        __fadd_rn(__fadd_rn(product, product), c.im)};
    return __fadd_rn(re2, im2) <= 4.0f;
}
