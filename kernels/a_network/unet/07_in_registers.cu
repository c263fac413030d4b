// Idea: a thread multiplies the elements that it has normalised: they stay in its
// registers, and the block meets once a stage, to add up.
// From the rung before: no input in shared memory, and no barrier before the products;
// FiLM's values and residuals are asked for before the sums.
// Requires: batch 1; width / 2 blocks of 2 * width + 32 threads, all on the GPU at the
// same time; after a launch of unet_empty.
using Weight = float;
#include "own_products.cuh"

// What a stage's input is made of besides its sums: asked for early, needed late.
struct Around {
    unsigned film[2][2], residual[8];
};

__device__ __forceinline__ int second_channel(const Stage& stage)
{
    const int element = 8 * threadIdx.x;
    return ((element + 4) >> stage.log_length) - (element >> stage.log_length);
}
__device__ __forceinline__ void look_around(Around& around, const Stage& stage,
                                            const float* exchange)
{
    const int element = 8 * threadIdx.x;
    if (element >= stage.channels * stage.length) return;
    if (stage.film >= 0) {
        const float* films = exchange + stage.film + (element >> stage.log_length);
        look(around.film[0], films, stage.channels);
        look(around.film[1], films + second_channel(stage), stage.channels);
    }
    if (stage.residual == kSummedResidual) {
        look_at_quads(around.residual, exchange + stage.residual_sums + element);
    }
}
__device__ __forceinline__ Around ask_around(const Stage& stage, const float* exchange)
{
    Around around;
#pragma unroll
    for (int i = 0; i < 4; ++i) around.film[i / 2][i % 2] = kEmpty;
#pragma unroll
    for (int i = 0; i < 8; ++i) around.residual[i] = kEmpty;
    look_around(around, stage, exchange);
    return around;
}

// From the sums of a stage to the input of its convolution.
template <int kWidth>
__device__ __forceinline__ void finish(float (&value)[8], float (&kept)[8],
                                       Around& around, const Norm& norm,
                                       const Stage& stage, const float* exchange)
{
    const int count = stage.channels * stage.length;
    if (stage.gamma >= 0) {
        const float2 all =
            moments<kWidth>(value, count / (8 * kGroups), held<kWidth>().moments);
#pragma unroll
        for (int i = 0; i < 8; i += 4) {
            const float scale = all.y * norm.gamma[i / 4];
#pragma unroll
            for (int j = i; j < i + 4; ++j) {
                value[j] = (value[j] - all.x) * scale + norm.beta[i / 4];
            }
            mish(value + i);
        }
    }
    if (8 * threadIdx.x >= count) return;
    if (stage.film >= 0) {
        while (!(complete(around.film[0]) && complete(around.film[1]))) {
            look_around(around, stage, exchange);
        }
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            value[i] = value[i] * __uint_as_float(around.film[i / 4][0]) +
                       __uint_as_float(around.film[i / 4][1]);
        }
    }
    if (stage.residual == kKeptResidual) {
#pragma unroll
        for (int i = 0; i < 8; ++i) value[i] += kept[i];
    }
    if (stage.residual == kSummedResidual) {
        while (!complete(around.residual)) look_around(around, stage, exchange);
#pragma unroll
        for (int i = 0; i < 8; ++i) value[i] += __uint_as_float(around.residual[i]);
    }
    if (stage.keep) {
#pragma unroll
        for (int i = 0; i < 8; ++i) kept[i] = value[i];
    }
}

template <int kWidth>
__device__ __forceinline__ void run_in_registers(const Weight* parameters,
                                                 float* exchange, const float* sample,
                                                 const int* timestep,
                                                 const float* observation, float* noise)
{
    const Program& program = held<kWidth>().program;
    const int thread = threadIdx.x;
    for (int i = thread; i < sizeof(Program) / 4; i += kTeams * kWidth) {
        copy_async<1>(reinterpret_cast<float*>(&held<kWidth>().program) + i,
                      reinterpret_cast<const float*>(&kWholeProgram<kWidth>) + i);
    }
    float* room = input_of<kWidth>(0);
    const int seen = thread + (thread < kWidth ? kTeams * kWidth : 0) - kWidth;
    const float observed = seen < kObservation ? observation[max(seen, 0)] : 0.0f;
    if (thread < kWidth) room[thread] = embedding<kWidth>(timestep[0], thread);
    alignas(16) float value[8], kept[8];
    first_sums<kWidth>(parameters, sample, value, kept);
    wait_for_copies();
    block_sync<kWidth>();  // the program, the barriers and the embedding are there
    Norm norm = norm_of(program, 0, parameters);
    Ring ring = {0, 0};
    wait_for_launch_before();  // all places are empty
    prepare_condition<kWidth>(ring, parameters, exchange, room, observed);
    compute_film<kWidth>(ring, program.first_film, exchange);
    Around around = ask_around(program.stage[0], exchange);
#pragma unroll 1
    for (int s = 0;; ++s) {
        const Stage& stage = program.stage[s];
        const bool last = s + 1 == program.stages;
        if (last && blockIdx.x > 0) return;
        finish<kWidth>(value, kept, around, norm, stage, exchange);
        if (stage.store >= 0) store<kWidth>(stage.store, value);
#pragma unroll 1
        for (int which = 0; which < (stage.point.inputs > 0 ? 2 : 1); ++which) {
            const Convolution& c = which == 0 ? stage.convolution : stage.point;
            float (*parts)[kMostSums] =
                parts_of_warps<kWidth>(which == 0 ? s % 2 : 2);
            all_products_of_own<kWidth>(ring, c, value, stage.skip, parts);
            consumers_sync<kWidth>();  // all warps have stored their parts
            const int sums = c.rows * length_after(c.kind, c.length);
            if (thread < sums) {
                const float sum = sum_of_parts<kWidth>(parts, sums, c.segments) +
                                  (which == 0 ? norm.bias : norm.point_bias);
                if (last) {
                    noise[thread % kSteps * kAction + thread / kSteps] = sum;
                } else {
                    hand_over(exchange + c.sums + blockIdx.x * sums + thread, sum);
                }
            }
        }
        if (last) return;
        norm = norm_of(program, s + 1, parameters);
        if (stage.next_film.channels > 0) {
            compute_film<kWidth>(ring, stage.next_film, exchange);
        }
        around = ask_around(program.stage[s + 1], exchange);
        await_sums(value, program.stage[s + 1], exchange);
    }
}

template <int kWidth>
__global__ void __launch_bounds__(kTeams* kWidth + 32, 1)
    unet_in_registers(const float* __restrict__ sample,
                      const int* __restrict__ timestep,
                      const float* __restrict__ observation,
                      const Weight* __restrict__ parameters, float* __restrict__ noise,
                      float* exchange)
{
    if (threadIdx.x >= kTeams * kWidth) {
        constexpr Program first = make_whole_program<kWidth>();
        if (threadIdx.x % 32 == 0) barriers().init(kTeams * kWidth / 32);
        __syncwarp();  // the barriers are there
        Producer<kWidth> producer = {parameters, {0, 0}, false};
        producer.send_first(first, blockIdx.x);
        block_sync<kWidth>();  // the program is there
        producer.send_stages(held<kWidth>().program, blockIdx.x);
        return;
    }
    run_in_registers<kWidth>(parameters, exchange, sample, timestep, observation, noise);
}
