// The discrete Fourier transform of 32 complex numbers in the registers of one thread.
#pragma once

// cos(2 pi k / 32); every k is a compile-time constant once the loops are unrolled.
__device__ constexpr float cos_of_32nds(int k)
{
    constexpr float kCos[] = {1.0f,         0.980785280f, 0.923879533f,
                              0.831469612f, 0.707106781f, 0.555570233f,
                              0.382683432f, 0.195090322f, 0.0f};
    k = k < 0 ? -k : k;
    k = k % 32 > 16 ? 32 - k % 32 : k % 32;
    return k <= 8 ? kCos[k] : -kCos[16 - k];
}

__device__ constexpr int five_bits_reversed(int i)
{
    return (i & 1) << 4 | (i & 2) << 2 | (i & 4) | (i & 8) >> 2 | (i & 16) >> 4;
}

// a, b = a + w b, a - w b with w = exp(kSign 2 pi i k / 32). If w is neither 1 nor
// kSign i, it takes six FMAs: the difference is 2 a minus the sum.
template <int kSign>
__device__ __forceinline__ void butterfly(float2& a, float2& b, int k)
{
    const float2 first = a;
    if (k == 0) {
        a = {first.x + b.x, first.y + b.y};
        b = {first.x - b.x, first.y - b.y};
    } else if (k == 8) {
        const float2 turned = {-kSign * b.y, kSign * b.x};
        a = {first.x + turned.x, first.y + turned.y};
        b = {first.x - turned.x, first.y - turned.y};
    } else {
        const float re = cos_of_32nds(k), im = kSign * cos_of_32nds(k - 8);
        a.x = fmaf(-im, b.y, fmaf(re, b.x, first.x));
        a.y = fmaf(im, b.x, fmaf(re, b.y, first.y));
        b.x = fmaf(2.0f, first.x, -a.x);
        b.y = fmaf(2.0f, first.y, -a.y);
    }
}

// values[k] = sum over j of values[j] exp(kSign 2 pi i j k / 32), unscaled: -1 is the
// forward, +1 the inverse transform. Radix 2, decimation in time (Cooley, Tukey 1965).
template <int kSign>
__device__ __forceinline__ void fft32(float2 (&values)[32])
{
    float2 v[32];
#pragma unroll
    for (int i = 0; i < 32; ++i) v[i] = values[five_bits_reversed(i)];
#pragma unroll
    for (int half = 1; half < 32; half *= 2) {
#pragma unroll
        for (int i = 0; i < 16; ++i) {
            const int k = i % half, at = i / half * 2 * half + k;
            butterfly<kSign>(v[at], v[at + half], k * (16 / half));
        }
    }
#pragma unroll
    for (int i = 0; i < 32; ++i) values[i] = v[i];
}
