// A block of the persistent kernel: its place, its threads, its shared memory.
#pragma once
#include "../../common/hopper/dependent.cuh"

constexpr int kWarps = 16;
constexpr int kThreads = 32 * kWarps;
constexpr int kConstants = 8192;  // floats: the constants of each channel
#include "activation.cuh"
#include "exchange.cuh"
#include "program.cuh"
#include "stream.cuh"

template <int kWidth>
struct Place {
    static constexpr int kSlices = kWidth / 16;
    int group, slice;

    __device__ int block() const { return group * kSlices + slice; }
};

template <int kWidth>
constexpr Program kProgram = make_program<kWidth>();
template <int kWidth>
__device__ const Program kProgramInMemory = kProgram<kWidth>;

constexpr int kParts = 3 + 3 * kMostStages;

struct Shared {
    Program program;
    Part parts[kParts];
    alignas(16) float rows[2][2][640];  // a stage's input: [stage % 2][segment]
    float vector[1600];  // inputs of the linear layers
    float film_bias[kMostStages][16];  // by stage; last: the FiLM before stage 0
    float step_bias[16];
    float2 moments[2][kWarps];
};

// The index of element e of a segment: 4 floats of padding after every 16.
__device__ __forceinline__ int padded(int e)
{
    return e + e / 16 * 4;
}
