// A block of the persistent kernel: its place, its threads, its shared memory.
#pragma once
#include "../../common/hopper/dependent.cuh"

constexpr int kSlots = 17;
constexpr int kSlotBytes = 10240;
constexpr int kConstants = 8192;  // floats
#include "activation.cuh"
#include "exchange.cuh"
#include "program.cuh"
#include "ring.cuh"

constexpr int kWarps = 16;  // that compute
constexpr int kUsers = 32 * kWarps;  // their threads
constexpr int kThreads = kUsers + 32;  // and one warp that fills the ring

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

struct Shared {
    Program program;
    alignas(
        16) float rows[2][2][640];  // a stage's input: even and odd stages, segments
    float vector[1600];  // input of the linear layers
    float film_bias[kMostStages][16];  // of the film after a stage; the last: the first
    float step_bias[16];
    float2 moments[2][kWarps];
    Barrier full[kSlots], empty[kSlots], constants;
};

__device__ __forceinline__ void users_sync()
{
    asm volatile("bar.sync 1, %0;" ::"n"(kUsers) : "memory");
}

// Where element e of a segment lies: 4 floats of padding after every 16.
__device__ __forceinline__ int padded(int e)
{
    return e + e / 16 * 4;
}
