// The same functions as in activation.cuh, in fewer instructions: each block computes
// all of them.
#pragma once

constexpr float kEpsilon = 1e-5f;  // of a norm

// Mish of four values with one division by the product of their denominators: the
// quotients of a group's 4096 values take longer than all other steps of a norm.
__device__ __forceinline__ void mish(float* x)
{
    float square[4], after[5];
    after[4] = 1.0f;
#pragma unroll
    for (int i = 3; i >= 0; --i) {
        const float e = __expf(fminf(x[i], 10.0f));  // beyond, the tanh is one
        square[i] = e * (e + 2.0f);
        after[i] = after[i + 1] * (square[i] + 2.0f);
    }
    float inverse = __fdividef(1.0f, after[0]);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        x[i] *= square[i] * (inverse * after[i + 1]);
        inverse *= square[i] + 2.0f;
    }
}
__device__ __forceinline__ float mish(float x)
{
    float four[4] = {x};
    mish(four);
    return four[0];
}

// The frequencies of a time step's embedding, in turns: 1 / (2 pi) down to a 10000th
// of it.
template <int kHalf>
struct Frequencies {
    double turns[kHalf];

    constexpr Frequencies() : turns{}
    {
        // The ratio of neighbours, exp(x): the series converges within a few terms.
        const double x = -9.210340371976184 / (kHalf - 1);
        double ratio = 1.0, term = 1.0;
        for (int i = 1; i < 30; ++i) {
            term *= x / i;
            ratio += term;
        }
        turns[0] = 0.15915494309189535;
        for (int i = 1; i < kHalf; ++i) turns[i] = turns[i - 1] * ratio;
    }
};
template <int kHalf>
__device__ const Frequencies<kHalf> kFrequencies{};

// Number `i` of the sines, then the cosines, of a time step. The angle is reduced in
// float64: in float32, an angle of 100 is off by 4e-6.
template <int kWidth>
__device__ float embedding(int step, int i)
{
    constexpr int kHalf = kWidth / 2;
    double turns = step * kFrequencies<kHalf>.turns[i % kHalf];
    turns -= rint(turns);
    const float half_turns = static_cast<float>(2 * turns);
    return i < kHalf ? sinpif(half_turns) : cospif(half_turns);
}
