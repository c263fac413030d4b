// One launch for the whole network, as in output_stationary.cuh; `Weight` is the type
// of its parameters. A thread keeps the elements that it normalised in registers.
#pragma once
#include "own_products.cuh"

// The facts that a thread needs as soon as a stage begins, loaded while it waits.
struct Step {
    int flags;
    int variant, point_variant;  // of the products: see own_variant
};
enum Flag : int {
    kNormed = 1,
    kFilmed = 2,
    kKept = 4,
    kSummed = 8,
    kKeeps = 16,
    kFull = 32,  // all threads have elements, not just half of them
    kPointed = 64,
    kStores = 128,  // the first stored tensor; 256: the second
};

template <int kWidth>
__device__ __forceinline__ Step (&steps())[kMostStages]
{
    __shared__ Step of_block[kMostStages];
    return of_block;
}
template <int kWidth>
__device__ __forceinline__ Step step_of(const Stage& stage)
{
    Step step = {};
    step.flags = (stage.gamma >= 0 ? kNormed : 0) | (stage.film >= 0 ? kFilmed : 0) |
                 (stage.residual == kKeptResidual ? kKept : 0) |
                 (stage.residual == kSummedResidual ? kSummed : 0) |
                 (stage.keep ? kKeeps : 0) |
                 (stage.channels * stage.length == 16 * kWidth ? kFull : 0) |
                 (stage.store >= 0 ? kStores << stage.store : 0);
    step.variant = own_variant<kWidth>(stage.convolution);
    if (stage.point.inputs > 0) {
        step.flags |= kPointed;
        step.point_variant = own_variant<kWidth>(stage.point);
    }
    return step;
}

// The mean and reciprocal standard deviation of a group, as by `moments` in norm.cuh. A
// group has kWidth / 4 threads if the stage is full, otherwise kWidth / 8.
__device__ __forceinline__ void join(float& mean, float& squares, float other,
                                     float more, float half_count)
{
    const float off = other - mean;
    squares = fmaf(off * off, half_count, squares + more);
    mean = 0.5f * (mean + other);
}
template <int kWidth>
__device__ __forceinline__ float2 own_moments(const float (&value)[8], bool full)
{
    constexpr int kThreads = kWidth / 8;
    float mean = 0.125f * (((value[0] + value[1]) + (value[2] + value[3])) +
                           ((value[4] + value[5]) + (value[6] + value[7])));
    float part[2] = {};
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const float off = value[i] - mean;
        part[i % 2] = fmaf(off, off, part[i % 2]);
    }
    float squares = part[0] + part[1];
#pragma unroll
    for (int apart = 1; apart < kThreads; apart *= 2) {
        join(mean, squares, __shfl_xor_sync(kAllLanes, mean, apart),
             __shfl_xor_sync(kAllLanes, squares, apart), 4.0f * apart);
    }
    float inverse = 1.0f / kWidth;  // 1 / count
    if (full) {
        inverse *= 0.5f;
        if constexpr (kThreads < 32) {
            join(mean, squares, __shfl_xor_sync(kAllLanes, mean, kThreads),
                 __shfl_xor_sync(kAllLanes, squares, kThreads), 4.0f * kThreads);
        } else {
            float2* of_warps = held<kWidth>().moments;
            const int warp = threadIdx.x / 32;
            if (threadIdx.x % 32 == 0) of_warps[warp] = make_float2(mean, squares);
            asm volatile("bar.sync %0, 64;" ::"r"(2 + warp / 2) : "memory");
            const float2 other = of_warps[warp ^ 1];
            join(mean, squares, other.x, other.y, 4.0f * kThreads);
        }
    }
    return make_float2(mean, rsqrtf(fmaf(squares, inverse, kEpsilon)));
}

// The FiLM values and residual of a stage's input: requested early, needed late.
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

// A thread's elements of a stage: requested, but not yet waited for.
struct Arriving {
    unsigned bits[8];
};

__device__ __forceinline__ Arriving ask_sums(const Stage& stage, const float* exchange)
{
    const bool own = 8 * threadIdx.x < stage.channels * stage.length;
    Arriving sums;
#pragma unroll
    for (int i = 0; i < 8; ++i) sums.bits[i] = own ? kEmpty : 0;
    if (own) look_at_quads(sums.bits, exchange + stage.sums + 8 * threadIdx.x);
    return sums;
}
__device__ __forceinline__ void await(float (&value)[8], Arriving& sums,
                                      const Stage& stage, const float* exchange)
{
    while (!complete(sums.bits)) {
        look_at_quads(sums.bits, exchange + stage.sums + 8 * threadIdx.x);
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 8; ++i) value[i] = __uint_as_float(sums.bits[i]);
}

// Turns a stage's sums into the input of its convolution.
template <int kWidth>
__device__ __forceinline__ void finish(float (&value)[8], float (&kept)[8],
                                       Around& around, const Norm& norm, int flags,
                                       const Stage& stage, const float* exchange)
{
    if (flags & kNormed) {
        const float2 all = own_moments<kWidth>(value, flags & kFull);
#pragma unroll
        for (int i = 0; i < 8; i += 4) {
            const float scale = all.y * norm.gamma[i / 4];
            const float shift = fmaf(-all.x, scale, norm.beta[i / 4]);
#pragma unroll
            for (int j = i; j < i + 4; ++j) value[j] = fmaf(value[j], scale, shift);
            mish(value + i);
        }
    }
    if (flags & kFilmed) {
        while (!(complete(around.film[0]) && complete(around.film[1]))) {
            look_around(around, stage, exchange);
        }
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            value[i] = fmaf(value[i], __uint_as_float(around.film[i / 4][0]),
                            __uint_as_float(around.film[i / 4][1]));
        }
    }
    if (flags & kKept) {
#pragma unroll
        for (int i = 0; i < 8; ++i) value[i] += kept[i];
    }
    if (flags & kSummed) {
        while (!complete(around.residual)) look_around(around, stage, exchange);
#pragma unroll
        for (int i = 0; i < 8; ++i) value[i] += __uint_as_float(around.residual[i]);
    }
    if (flags & kKeeps) {
#pragma unroll
        for (int i = 0; i < 8; ++i) kept[i] = value[i];
    }
    if (flags & kStores) store<kWidth>(0, value);
    if (flags & 2 * kStores) store<kWidth>(1, value);
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
    float* scratch = input_of<kWidth>(0);
    const int seen = thread + (thread < kWidth ? kTeams * kWidth : 0) - kWidth;
    const float observed = seen < kObservation ? observation[max(seen, 0)] : 0.0f;
    if (thread < kWidth) scratch[thread] = embedding<kWidth>(timestep[0], thread);
    alignas(16) float value[8], kept[8];
    first_sums<kWidth>(parameters, sample, value, kept);
    wait_for_copies();
    block_sync<kWidth>();  // program, barriers and embedding are ready
    if (thread < program.stages) {  // visible after the barriers of prepare_condition
        steps<kWidth>()[thread] = step_of<kWidth>(program.stage[thread]);
    }
    Norm norm = norm_of(program, 0, parameters);
    Ring ring = {0, 0};
    wait_for_launch_before();  // every value of the exchange is empty
    prepare_condition<kWidth>(ring, parameters, exchange, scratch, observed);
    compute_film<kWidth>(ring, program.first_film, exchange);
    Around around = ask_around(program.stage[0], exchange);
    Step step = steps<kWidth>()[0];
#pragma unroll 1
    for (int s = 0;; ++s) {
        const Stage& stage = program.stage[s];
        const bool last = s + 1 == program.stages;
        if (last && blockIdx.x > 0) return;
        if ((step.flags & kFull) || thread < kWidth) {
            finish<kWidth>(value, kept, around, norm, step.flags, stage, exchange);
        }
        Arriving next;
        float bias = norm.bias;
#pragma unroll 1
        for (int which = 0; which < (step.flags & kPointed ? 2 : 1); ++which) {
            const Convolution& c = which == 0 ? stage.convolution : stage.point;
            float (*parts)[kMostSums] =
                parts_of_warps<kWidth>(which == 0 ? s % 2 : 2);
            all_products_of_own<kWidth>(ring,
                                        which == 0 ? step.variant
                                                   : steps<kWidth>()[s].point_variant,
                                        c.segments, value, stage.skip, parts);
            consumers_sync<kWidth>();  // all warps have stored their parts
            const int sums = c.rows * length_after(c.kind, c.length);
            if (thread < sums) {
                const float sum = sum_of_parts<kWidth>(parts, sums, c.segments) + bias;
                if (last) {
                    noise[thread % kSteps * kAction + thread / kSteps] = sum;
                } else {
                    hand_over(exchange + c.sums + blockIdx.x * sums + thread, sum);
                }
            }
            if (last) return;
            if (which > 0) break;
            // Request the next sums now, so that the loads overlap the work below.
            bias = norm.point_bias;
            norm = norm_of(program, s + 1, parameters);
            next = ask_sums(program.stage[s + 1], exchange);
        }
        around = ask_around(program.stage[s + 1], exchange);
        if (stage.next_film.channels > 0) {
            compute_film<kWidth>(ring, stage.next_film, exchange);
        }
        step = steps<kWidth>()[s + 1];
        await(value, next, program.stage[s + 1], exchange);
    }
}

// Streams the weights of all stages. Those of stage 0 directly follow the condition's;
// the rest wait until those are read, so as not to compete with the condition's loads.
template <int kWidth>
__device__ __forceinline__ void send_weights(Producer<kWidth>& producer)
{
    const Program& program = held<kWidth>().program;
    for (int s = 0; s < program.stages; ++s) {
        const Stage& stage = program.stage[s];
        if (s + 1 == program.stages && blockIdx.x > 0) return;
        if (s == 1) mbarrier_wait(barriers().empty + 1, 0);  // slot 1 has been read
        producer.send(stage.convolution, blockIdx.x);
        if (stage.point.inputs > 0) producer.send(stage.point, blockIdx.x);
        if (stage.next_film.channels > 0) producer.send(stage.next_film, blockIdx.x);
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
        __syncwarp();  // the barriers are initialised
        Producer<kWidth> producer = {parameters, {0, 0}, false};
        producer.send_first(first, blockIdx.x);
        block_sync<kWidth>();  // the program is loaded
        send_weights<kWidth>(producer);
        return;
    }
    run_in_registers<kWidth>(
        parameters, exchange, sample, timestep, observation, noise);
}
