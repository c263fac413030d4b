// One launch for the whole network; `Weight` is the type of its parameters. One warp of
// a block streams weights, the others go from stage to stage.
#pragma once
#include "../../common/hopper/dependent.cuh"
#include "condition.cuh"
#include "norm.cuh"

template <int kWidth>
__device__ const Program kWholeProgram = make_program<kWidth, 1>();

// Reads those of two quads that have not arrived.
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

// A thread's 8 elements of a stage's input.
__device__ __forceinline__ void store_row(float* x, const float (&value)[8])
{
#pragma unroll
    for (int i = 0; i < 8; i += 4) {
        *reinterpret_cast<float4*>(x + swizzled(2 * threadIdx.x + i / 4)) =
            make_float4(value[i], value[i + 1], value[i + 2], value[i + 3]);
    }
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
    float* x = input_of<kWidth>(0);
    float* room = x + 20 * kWidth;  // behind what a rehearsal reads
    const int seen = thread + (thread < kWidth ? kTeams * kWidth : 0) - kWidth;
    const float observed = seen < kObservation ? observation[max(seen, 0)] : 0.0f;
    if (thread < kWidth) room[thread] = embedding<kWidth>(timestep[0], thread);
    float first[8], kept[8], stored[2][8] = {};
    first_sums<kWidth>(parameters, sample, first, kept);
    for (int i = thread; i < 20 * kWidth; i += kTeams * kWidth) x[i] = 0.0f;
    wait_for_copies();
    block_sync<kWidth>();  // the program, barriers, embedding, and what rehearsals read
    Norm norm = norm_of(program, 0, parameters);
    Ring ring = {0, 0};
    for (int i = thread / 32; i < kVariants; i += kTeams * kWidth / 32) {
        products_of<kWidth>(kVariantCodes[i], ring, {0, 0, 0, kTeams, kTeams, true});
    }
    wait_for_launch_before();  // all places are empty
    prepare_condition<kWidth>(ring, parameters, exchange, room, observed);
    compute_film<kWidth>(ring, program.first_film, exchange);
    for (int s = 0; s < program.stages; ++s) {
        const Stage& stage = program.stage[s];
        const bool last = s + 1 == program.stages;
        if (last && blockIdx.x > 0) return;
        const int count = stage.channels * stage.length;
        const bool own = element < count;
        Norm next = {};
        if (!last) next = norm_of(program, s + 1, parameters);
        unsigned bits[8], residual[8], film[2][2];
        const float* films =
            exchange + max(stage.film, 0) + (own ? element >> stage.log_length : 0);
        const int apart = own ? ((element + 4) >> stage.log_length) -
                                    (element >> stage.log_length)
                              : 0;
#pragma unroll
        for (int i = 0; i < 8; ++i) bits[i] = residual[i] = kEmpty;
        film[0][0] = film[0][1] = film[1][0] = film[1][1] = kEmpty;
        float value[8] = {};
        if (own) {
            if (stage.film >= 0) {
                look(film[0], films, stage.channels);
                look(film[1], films + apart, stage.channels);
            }
            if (stage.residual == kSummedResidual) {
                look_at_quads(residual, exchange + stage.residual_sums + element);
            }
            if (s == 0) {
#pragma unroll
                for (int i = 0; i < 8; ++i) value[i] = first[i];
            } else {
                do {
                    look_at_quads(bits, exchange + stage.sums + element);
                } while (!complete(bits));
#pragma unroll
                for (int i = 0; i < 8; ++i) value[i] = __uint_as_float(bits[i]);
            }
        }
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
        if (own) {
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
                while (!complete(residual)) {
                    look_at_quads(residual, exchange + stage.residual_sums + element);
                }
#pragma unroll
                for (int i = 0; i < 8; ++i) value[i] += __uint_as_float(residual[i]);
            }
#pragma unroll
            for (int i = 0; i < 8; ++i) {
                if (stage.keep) kept[i] = value[i];
                if (stage.store == 0) stored[0][i] = value[i];
                if (stage.store == 1) stored[1][i] = value[i];
            }
            store_row(x, value);
            if (stage.skip >= 0) {
#pragma unroll
                for (int i = 0; i < 8; ++i) {
                    value[i] = stage.skip == 0 ? stored[0][i] : stored[1][i];
                }
                store_row(input_of<kWidth>(1), value);
            }
        }
        consumers_sync<kWidth>();  // the input of this stage is complete
        const Convolution& c = stage.convolution;
        const float sum = convolve<kWidth>(ring, c, 0) + norm.bias;
        const int sums = c.rows * length_after(c.kind, c.length);
        if (thread < sums) {
            if (last) {
                noise[thread % kSteps * kAction + thread / kSteps] = sum;
            } else {
                hand_over(exchange + c.sums + blockIdx.x * sums + thread, sum);
            }
        }
        if (stage.point.inputs > 0) {
            const float around =
                convolve<kWidth>(ring, stage.point, 1) + norm.point_bias;
            const int arounds = c.rows * stage.length;
            if (thread < arounds) {
                hand_over(exchange + stage.point.sums + blockIdx.x * arounds + thread,
                          around);
            }
        }
        if (stage.next_film.channels > 0) {
            compute_film<kWidth>(ring, stage.next_film, exchange);
        }
        norm = next;
    }
}

template <int kWidth>
__global__ void __launch_bounds__(kTeams* kWidth + 32, 1)
    unet_streamed(const float* __restrict__ sample, const int* __restrict__ timestep,
                  const float* __restrict__ observation,
                  const Weight* __restrict__ parameters, float* __restrict__ noise,
                  float* exchange)
{
    if (threadIdx.x >= kTeams * kWidth) {
        constexpr Program first = make_program<kWidth, 1>();
        if (threadIdx.x % 32 == 0) barriers().init(kTeams * kWidth / 32);
        __syncwarp();  // the barriers are there
        Producer<kWidth> producer = {parameters, {0, 0}, false};
        producer.send_first(first, blockIdx.x);
        block_sync<kWidth>();  // the program is there
        producer.send_stages(held<kWidth>().program, blockIdx.x);
        return;
    }
    run<kWidth>(parameters, exchange, sample, timestep, observation, noise);
}
