// What lies between convolutions, and the time step's embedding.
#pragma once

constexpr float kEpsilon = 1e-5f;  // of a norm

// x tanh(log(1 + exp(x))): with e = exp(x), the tanh is (e e + 2 e) / (e e + 2 e + 2).
// Where __expf is off by many units, e is small beside 1, or the tanh is one.
__device__ __forceinline__ float mish(float x)
{
    const float e = __expf(fminf(x, 20.0f));
    const float square = e * (e + 2.0f);
    return x * __fdividef(square, square + 2.0f);
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
