// The activation between convolutions, and the time step's embedding.
#pragma once

constexpr float kEpsilon = 1e-5f;  // added to the variance

// x tanh(log(1 + exp(x))): with e = exp(x), tanh is (e e + 2 e) / (e e + 2 e + 2).
__device__ __forceinline__ float mish(float x)
{
    const float e = expf(fminf(x, 20.0f));
    const float square = e * (e + 2.0f);
    return x * (square / (square + 2.0f));
}

// Element `i` of a time step's embedding: all sines, then all cosines. The angle is
// reduced in float64: in float32, an angle of 100 is off by 4e-6.
template <int kWidth>
__device__ float embedding(int step, int i)
{
    constexpr int kHalf = kWidth / 2;
    constexpr double kTurn = 6.283185307179586;
    const double frequency = exp((i % kHalf) * (-9.210340371976184 / (kHalf - 1)));
    double turns = step * frequency / kTurn;
    turns -= rint(turns);
    const float angle = static_cast<float>(turns * kTurn);
    return i < kHalf ? sinf(angle) : cosf(angle);
}
