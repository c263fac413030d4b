// One launch for the whole network; `Weight` is the type of its parameters. One warp of
// a block streams weights, the others compute one stage after the other.
#pragma once
#include "../../common/hopper/dependent.cuh"
#include "condition.cuh"
#include "norm.cuh"

template <int kWidth>
__device__ const Program kWholeProgram = make_whole_program<kWidth>();

// Reloads those of two quads that have not arrived yet.
__device__ __forceinline__ void look_at_quads(unsigned (&bits)[8], const float* from)
{
#pragma unroll
    for (int i = 0; i < 8; i += 4) {
        asm volatile(
            "{\n"
            ".reg .pred empty;\n"
            "setp.eq.u32 empty, %0, 0xffffffff;\n"
            "setp.eq.or.u32 empty, %1, 0xffffffff, empty;\n"
            "setp.eq.or.u32 empty, %2, 0xffffffff, empty;\n"
            "setp.eq.or.u32 empty, %3, 0xffffffff, empty;\n"
            "@empty ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];\n"
            "}"
            : "+r"(bits[i]), "+r"(bits[i + 1]), "+r"(bits[i + 2]), "+r"(bits[i + 3])
            : "l"(from + i)
            : "memory");
    }
}

// Stores a thread's 8 elements of a stage's input.
__device__ __forceinline__ void store_row(float* x, const float (&value)[8])
{
#pragma unroll
    for (int i = 0; i < 8; i += 4) {
        *reinterpret_cast<float4*>(x + swizzled(2 * threadIdx.x + i / 4)) =
            make_float4(value[i], value[i + 1], value[i + 2], value[i + 3]);
    }
}

// Waits for this thread's elements of a stage, the sums of the previous stage.
__device__ __forceinline__ void await_sums(float (&value)[8], const Stage& stage,
                                           const float* exchange)
{
    unsigned bits[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) bits[i] = kEmpty;
    if (8 * threadIdx.x < stage.channels * stage.length) {
        do {
            look_at_quads(bits, exchange + stage.sums + 8 * threadIdx.x);
        } while (!complete(bits));
    } else {
#pragma unroll
        for (int i = 0; i < 8; ++i) bits[i] = 0;
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 8; ++i) value[i] = __uint_as_float(bits[i]);
}

// Turns a stage's sums into the input of its convolution.
template <int kWidth>
__device__ __forceinline__ void finish_norm(float (&value)[8], float (&kept)[8],
                                            const Norm& norm, const Stage& stage,
                                            const float* exchange)
{
    const int element = 8 * threadIdx.x, count = stage.channels * stage.length;
    const bool own = element < count;
    const int channel = element >> stage.log_length;
    const int apart = ((element + 4) >> stage.log_length) - channel;
    const float* films = exchange + stage.film + channel;
    const float* residuals = exchange + stage.residual_sums + element;
    unsigned film[2][2] = {{kEmpty, kEmpty}, {kEmpty, kEmpty}}, residual[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) residual[i] = kEmpty;
    if (own && stage.film >= 0) {
        look(film[0], films, stage.channels);
        look(film[1], films + apart, stage.channels);
    }
    if (own && stage.residual == kSummedResidual) look_at_quads(residual, residuals);
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
    if (!own) return;
    if (stage.film >= 0) {
        while (!(complete(film[0]) && complete(film[1]))) {
            look(film[0], films, stage.channels);
            look(film[1], films + apart, stage.channels);
        }
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            value[i] = value[i] * __uint_as_float(film[i / 4][0]) +
                       __uint_as_float(film[i / 4][1]);
        }
    }
    if (stage.residual == kKeptResidual) {
#pragma unroll
        for (int i = 0; i < 8; ++i) value[i] += kept[i];
    }
    if (stage.residual == kSummedResidual) {
        while (!complete(residual)) look_at_quads(residual, residuals);
#pragma unroll
        for (int i = 0; i < 8; ++i) value[i] += __uint_as_float(residual[i]);
    }
    if (stage.keep) {
#pragma unroll
        for (int i = 0; i < 8; ++i) kept[i] = value[i];
    }
    store_row(input_of<kWidth>(0), value);
    if (stage.store >= 0) store_row(input_of<kWidth>(1 + stage.store), value);
}

template <int kWidth>
__device__ __forceinline__ void run(const Weight* parameters, float* exchange,
                                    const float* sample, const int* timestep,
                                    const float* observation, float* noise)
{
    const Program& program = held<kWidth>().program;
    const int thread = threadIdx.x, element = 8 * thread;
    for (int i = thread; i < sizeof(Program) / 4; i += kTeams * kWidth) {
        copy_async<1>(reinterpret_cast<float*>(&held<kWidth>().program) + i,
                      reinterpret_cast<const float*>(&kWholeProgram<kWidth>) + i);
    }
    float* scratch = input_of<kWidth>(1);
    const int seen = thread + (thread < kWidth ? kTeams * kWidth : 0) - kWidth;
    const float observed = seen < kObservation ? observation[max(seen, 0)] : 0.0f;
    if (thread < kWidth) scratch[thread] = embedding<kWidth>(timestep[0], thread);
    float value[8], kept[8];
    first_sums<kWidth>(parameters, sample, value, kept);
    wait_for_copies();
    block_sync<kWidth>();  // program, barriers and embedding are ready
    Norm norm = norm_of(program, 0, parameters);
    Ring ring = {0, 0};
    wait_for_launch_before();  // every value of the exchange is empty
    prepare_condition<kWidth>(ring, parameters, exchange, scratch, observed);
    compute_film<kWidth>(ring, program.first_film, exchange);
#pragma unroll 1
    for (int s = 0;; ++s) {
        const Stage& stage = program.stage[s];
        const bool last = s + 1 == program.stages;
        if (last && blockIdx.x > 0) return;
        finish_norm<kWidth>(value, kept, norm, stage, exchange);
        consumers_sync<kWidth>();  // the input of this stage is complete
#pragma unroll 1
        for (int which = 0; which < (stage.point.inputs > 0 ? 2 : 1); ++which) {
            const Convolution& c = which == 0 ? stage.convolution : stage.point;
            const int sums = c.rows * length_after(c.kind, c.length);
            const float bias = which == 0 ? norm.bias : norm.point_bias;
            const float sum = convolve<kWidth>(ring, c, stage.skip, which) + bias;
            if (thread < sums && !last) {
                hand_over(exchange + c.sums + blockIdx.x * sums + thread, sum);
            } else if (thread < sums) {
                noise[thread % kSteps * kAction + thread / kSteps] = sum;
            }
        }
        if (last) return;
        norm = norm_of(program, s + 1, parameters);
        if (stage.next_film.channels > 0) {
            compute_film<kWidth>(ring, stage.next_film, exchange);
        }
        await_sums(value, program.stage[s + 1], exchange);
    }
}

template <int kWidth>
__global__ void __launch_bounds__(kTeams* kWidth + 32, 1)
    unet_output_stationary(const float* __restrict__ sample,
                           const int* __restrict__ timestep,
                           const float* __restrict__ observation,
                           const Weight* __restrict__ parameters,
                           float* __restrict__ noise, float* exchange)
{
    if (threadIdx.x >= kTeams * kWidth) {
        constexpr Program first = make_whole_program<kWidth>();
        if (threadIdx.x % 32 == 0) barriers().init(kTeams * kWidth / 32);
        __syncwarp();  // the barriers are initialised
        Producer<kWidth> producer = {parameters, {0, 0}, false};
        producer.send_first(first, blockIdx.x);
        block_sync<kWidth>();  // the program is loaded
        producer.send_stages(held<kWidth>().program, blockIdx.x);
        return;
    }
    run<kWidth>(parameters, exchange, sample, timestep, observation, noise);
}
