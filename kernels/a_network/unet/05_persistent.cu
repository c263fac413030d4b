// Idea: one launch of persistent blocks; weights stream in while the blocks wait.
// From the rung before: one block per group of channels and slice of the outputs; sums
// pass between blocks value by value; each warp loads its next rows of weights ahead.
// Requires: batch 1; blocks of kThreads threads, 8 groups x kWidth / 16 slices, all
// resident at the same time; a launch of unet_empty before it.
#include "convolve.cuh"
#include "weights.cuh"

// One warp per row: outputs of a linear layer whose inputs are in shared memory. The
// outputs of rows from `half` on are stored `apart` elements further on.
template <int kLength, int kSegments>
__device__ __forceinline__ void linear(Stream& stream, const float* inputs, int rows,
                                       const float* bias, float* to, int half = kNever,
                                       int apart = 0)
{
    constexpr int kPart = kLength / kSegments;
    const int lane = threadIdx.x % 32;
    for (int row = threadIdx.x / 32; row < rows; row += kWarps) {
        float sum = 0.0f;
#pragma unroll
        for (int segment = 0; segment < kSegments; ++segment) {
            const float* weights = stream.wait();
#pragma unroll
            for (int i = 0; i < kPart; i += 32) {
                if (i + lane < kPart) {
                    sum += weights[i + lane] * inputs[segment * kPart + i + lane];
                }
            }
            stream.release();
        }
        sum = warp_sum(sum);
        if (lane == 0) {
            hand_over(to + row + (row >= half ? apart : 0), sum + bias[row]);
        }
    }
}

template <int kWidth>
__device__ __noinline__ Stream compute_film(Stream stream, float* exchange,
                                            const Film& film, const float* condition,
                                            const float* bias, Place<kWidth> place)
{
    linear<kWidth + kObservation, 1>(stream, condition, 2 * film.rows, bias,
                                     exchange + film.values + first_of(film, place),
                                     film.rows, film.channels - film.rows);
    return stream;
}

// The sum of the warp's values, in all lanes.
__device__ __forceinline__ float sum_of_lanes(float value)
{
#pragma unroll
    for (int apart = 16; apart > 0; apart /= 2) {
        value += __shfl_xor_sync(kAllLanes, value, apart);
    }
    return value;
}

// The mean and the reciprocal standard deviation of `count` values, one per thread:
// first per warp, then over all warps (Chan, Golub, LeVeque 1979).
__device__ __forceinline__ float2 moments(float value, int count, float2* of_warps)
{
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = count / 32;
    const float mean = sum_of_lanes(value) * (1.0f / 32);
    const float squares = sum_of_lanes((value - mean) * (value - mean));
    if (lane == 0) of_warps[warp] = make_float2(mean, squares);
    __syncthreads();  // all warps have stored their moments
    const float2 own = lane < warps ? of_warps[lane] : float2{};
    const float all = sum_of_lanes(own.x) / warps;
    const float off = lane < warps ? own.x - all : 0.0f;
    const float spread = sum_of_lanes(own.y + 32 * off * off);
    return make_float2(all, rsqrtf(spread / count + kEpsilon));
}

// The first convolution, which has two inputs, and the 1-tap convolution beside it.
template <int kWidth>
__device__ float2 first_sums(const float* parameters, const float* sample, int channel,
                             int position)
{
    constexpr Program kP = kProgram<kWidth>;
    const float* weight = parameters + kP.first_weight + channel * kAction * 5;
    const float* point = parameters + kP.first_point_weight + channel * kAction;
    float2 sum = make_float2(0.0f, parameters[kP.first_point_bias + channel]);
#pragma unroll
    for (int i = 0; i < kAction; ++i) {
#pragma unroll
        for (int t = 0; t < 5; ++t) {
            const int p = position + t - 2;
            if (p >= 0 && p < kSteps)
                sum.x += weight[i * 5 + t] * sample[p * kAction + i];
        }
        sum.y += point[i] * sample[position * kAction + i];
    }
    return sum;
}

// The input of the FiLM layers: the time step's embedding after two linear layers, then
// the observation, both activated.
template <int kWidth>
__device__ const float* prepare_condition(Stream& stream, Shared& shared,
                                          float* exchange, int timestep, float observed,
                                          Place<kWidth> place)
{
    const Program& program = shared.program;
    float* first = shared.vector;
    float* second = first + kWidth;
    float* condition = second + 4 * kWidth;
    for (int i = threadIdx.x; i < kWidth; i += kThreads) {
        first[i] = embedding<kWidth>(timestep, i);
    }
    __syncthreads();  // the embedding is complete
    linear<kWidth, 1>(stream, first, 8, shared.step_bias,
                      exchange + program.hidden + place.block() * 8);
    for (int i = threadIdx.x; i < 4 * kWidth; i += kThreads) {
        second[i] = mish(await(exchange + program.hidden + i));
    }
    __syncthreads();  // the second layer's input is complete
    linear<4 * kWidth, 2>(stream, second, 2, shared.step_bias + 8,
                          exchange + program.embedded + place.block() * 2);
    for (int i = threadIdx.x; i < kWidth + kObservation; i += kThreads) {
        condition[i] =
            mish(i < kWidth ? await(exchange + program.embedded + i) : observed);
    }
    wait_for_groups<kDepth>();  // for the constants of each channel
    __syncthreads();  // the constants and the condition are complete
    return condition;
}

template <int kWidth>
__device__ void run(Stream& stream, Shared& shared, const float* constants,
                    const float* parameters, float* exchange, const float* sample,
                    const int* timestep, const float* observation, float* noise,
                    Place<kWidth> place)
{
    const Program& program = shared.program;
    const int element = threadIdx.x;
    constexpr int kFirst = kWidth / kGroups * kSteps;  // elements of stage 0
    float2 first = {};
    if (element < kFirst) {
        first = first_sums<kWidth>(parameters, sample,
                                   place.group * (kWidth / kGroups) + element / kSteps,
                                   element % kSteps);
    }
    load_biases(shared, parameters, place);
    const int observed = element + (element < kWidth ? kThreads : 0) - kWidth;
    const float seen = observed < kObservation ? observation[max(observed, 0)] : 0.0f;
    const int step = timestep[0];
    wait_for_launch_before();  // every value of the exchange is empty
    float kept = first.y, stored[2] = {};
    const float* condition =
        prepare_condition(stream, shared, exchange, step, seen, place);
    stream = compute_film(stream, exchange, program.first_film, condition,
                          shared.film_bias[kMostStages - 1], place);
    for (int s = 0; s < program.stages; ++s) {
        const Stage& stage = program.stage[s];
        if (s + 1 == program.stages && place.slice > 0) return;
        const int channels = stage.channels / kGroups;  // of this group
        const int count = channels * stage.length;
        const bool own = element < count;
        const int channel = own ? element >> stage.log_length : 0;
        const float* constant = constants + stage.constants + channel;
        float value = 0.0f;
        unsigned film[2] = {kEmpty, kEmpty}, residual[kGroups];
        const float* films = exchange + stage.film + place.group * channels + channel;
        const float* residuals =
            exchange + stage.residual_sums + place.group * count + element;
#pragma unroll
        for (int i = 0; i < kGroups; ++i) residual[i] = kEmpty;
        if (own) {
            if (stage.film >= 0) look(film, films, stage.channels);
            if (stage.residual == kSummedResidual) {
                look(residual, residuals, kGroups * count);
            }
            value = s == 0 ? first.x
                           : await_sum<kGroups>(
                                 exchange + stage.sums + place.group * count + element,
                                 kGroups * count);
            value += constant[0];
        }
        if (stage.gamma >= 0) {
            const float2 norm = moments(value, count, shared.moments[s % 2]);
            value = mish((value - norm.x) * norm.y * constant[channels] +
                         constant[2 * channels]);
        }
        if (own) {
            if (stage.film >= 0) {
                while (!complete(film)) look(film, films, stage.channels);
                value = value * __uint_as_float(film[0]) + __uint_as_float(film[1]);
            }
            if (stage.residual == kKeptResidual) value += kept;
            if (stage.residual == kSummedResidual) {
                while (!complete(residual)) look(residual, residuals, kGroups * count);
                value += sum_of(residual) + constant[3 * channels];
            }
            if (stage.keep) kept = value;
            if (stage.store >= 0) stored[stage.store] = value;
            shared.rows[s % 2][0][padded(element)] = value;
            if (stage.skip >= 0) {
                shared.rows[s % 2][1][padded(element)] = stored[stage.skip];
            }
        }
        __syncthreads();  // the input of this stage is complete
        stream = convolve_any(stream, stage.convolution, place, shared.rows[s % 2],
                              exchange);
        if (stage.point.inputs > 0) {
            stream =
                convolve_any(stream, stage.point, place, shared.rows[s % 2], exchange);
        }
        if (stage.next_film.channels > 0) {
            stream = compute_film(stream, exchange, stage.next_film, condition,
                                  shared.film_bias[s], place);
        }
    }
    if (place.group == 0 && threadIdx.x < kAction * kSteps) {
        const int out = threadIdx.x / kSteps, position = threadIdx.x % kSteps;
        noise[position * kAction + out] =
            await_sum<kGroups>(exchange + program.out_sums + threadIdx.x,
                               kAction * kSteps) +
            parameters[program.out_bias + out];
    }
}

template <int kWidth>
__global__ void __launch_bounds__(kThreads)
    unet_persistent(const float* __restrict__ sample, const int* __restrict__ timestep,
                    const float* __restrict__ observation,
                    const float* __restrict__ parameters, float* __restrict__ noise,
                    float* exchange)
{
    static_assert(kProgram<kWidth>.constants <= kConstants, "they fit");
    extern __shared__ __align__(128) char slots[];
    __shared__ Shared shared;
    float* constants = reinterpret_cast<float*>(slots + kWarps * kDepth * kRowBytes);
    const Place<kWidth> place = {static_cast<int>(blockIdx.x) % kGroups,
                                 static_cast<int>(blockIdx.x) / kGroups};
    for (int i = threadIdx.x; i < sizeof(Program) / 4; i += kThreads) {
        reinterpret_cast<int*>(&shared.program)[i] =
            reinterpret_cast<const int*>(&kProgramInMemory<kWidth>)[i];
    }
    __syncthreads();  // the program is loaded
    list_parts(shared.parts, shared.program, place);
    copy_constants(constants, shared.program, parameters, place);
    __syncthreads();  // the list of weights is complete
    const int warp = threadIdx.x / 32;
    Stream stream = {shared.parts,
                     parameters,
                     slots + warp * kDepth * kRowBytes,
                     0,
                     warp,
                     0,
                     3 + 3 * shared.program.stages,
                     0,
                     0};
    for (int i = 0; i < kDepth; ++i) stream.ask();
    run(stream, shared, constants, parameters, exchange, sample, timestep, observation,
        noise, place);
}
