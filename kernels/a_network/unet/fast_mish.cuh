// The functions of activation.cuh in fewer instructions, because here every block
// activates all channels.
#pragma once

constexpr float kEpsilon = 1e-5f;  // added to the variance

// Mish of four values with one division, by the product of their denominators: separate
// divisions for a stage's 4096 values take longer than the rest of the norm.
__device__ __forceinline__ void mish(float* x)
{
    float square[4], after[5];
    after[4] = 1.0f;
#pragma unroll
    for (int i = 3; i >= 0; --i) {
        const float e = __expf(fminf(x[i], 10.0f));  // tanh is 1 beyond this
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

// The frequencies of a time step's embedding, in turns: from 1 / (2 pi) down to a
// 10000th of that.
template <int kHalf>
struct Frequencies {
    double turns[kHalf];

    constexpr Frequencies() : turns{}
    {
        // The ratio of neighbours is exp(x), whose series converges within a few terms.
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

// Element `i` of a time step's embedding: all sines, then all cosines. The angle is
// reduced in float64: in float32, an angle of 100 is off by 4e-6.
template <int kWidth>
__device__ float embedding(int step, int i)
{
    constexpr int kHalf = kWidth / 2;
    double turns = step * kFrequencies<kHalf>.turns[i % kHalf];
    turns -= rint(turns);
    const float half_turns = static_cast<float>(2 * turns);
    return i < kHalf ? sinpif(half_turns) : cospif(half_turns);
}
