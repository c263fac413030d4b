// Idea: one launch whose blocks stay; weights stream in while blocks wait.
// From the rung before: a block for a group of channels and a slice of the outputs;
// sums are handed over value by value; a warp fills a ring with all weights in order.
// Requires: batch 1; blocks of kThreads threads, 8 groups x kWidth / 16 slices, all on
// the GPU at the same time; after a launch of unet_empty.
#include "convolve.cuh"
#include "weights.cuh"

// One warp a row: outputs of a linear layer whose inputs lie in shared memory.
__device__ void linear(Ring& ring, const float* inputs, int length, int rows,
                       const float* bias, float* to)
{
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int most = kSlotBytes / (8 * length) * 2;
    for (int first = 0; first < rows; first += most) {
        const float* weights = ring.wait();
        const int count = min(most, rows - first);
        for (int row = warp; row < count; row += kWarps) {
            float sum = 0.0f;
            for (int i = lane; i < length; i += 32) {
                sum += weights[row * length + i] * inputs[i];
            }
            sum = warp_sum(sum);
            if (lane == 0) hand_over(to + first + row, sum + bias[first + row]);
        }
        ring.release();
    }
}

template <int kWidth>
__device__ void compute_film(Ring& ring, float* exchange, const Film& film,
                             const float* condition, const float* bias,
                             Place<kWidth> place)
{
    for (int half = 0; half < 2; ++half) {
        linear(ring, condition, kWidth + kObservation, film.rows, bias + half * 8,
               exchange + film.values + half * film.channels + first_of(film, place));
    }
}

// The mean of `count` values, one a thread, and one over their standard deviation: each
// warp its own, then all together (Chan, Golub, LeVeque 1979).
__device__ float2 moments(float value, int count, float2* of_warps)
{
    const int warp = threadIdx.x / 32;
    float sum = value;
#pragma unroll
    for (int apart = 16; apart > 0; apart /= 2) {
        sum += __shfl_xor_sync(kAllLanes, sum, apart);
    }
    const float mean = sum / 32;
    float squares = (value - mean) * (value - mean);
#pragma unroll
    for (int apart = 16; apart > 0; apart /= 2) {
        squares += __shfl_xor_sync(kAllLanes, squares, apart);
    }
    if (threadIdx.x % 32 == 0) of_warps[warp] = make_float2(mean, squares);
    users_sync();  // all warps have stored their moments
    const int warps = count / 32;
    float all = 0.0f;
    for (int w = 0; w < warps; ++w) all += of_warps[w].x;
    all /= warps;
    float spread = 0.0f;
    for (int w = 0; w < warps; ++w) {
        const float off = of_warps[w].x - all;
        spread += of_warps[w].y + 32 * off * off;
    }
    return make_float2(all, rsqrtf(spread / count + kEpsilon));
}

// The first convolution, of two inputs, and the one with one tap that goes around it.
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

// The vector that FiLM's layers take: two linear layers of the time step's embedding,
// then the observation, activated.
template <int kWidth>
__device__ const float* prepare_condition(Ring& ring, Shared& shared, float* exchange,
                                          int timestep, float observed,
                                          Place<kWidth> place)
{
    const Program& program = shared.program;
    float* first = shared.vector;
    float* second = first + kWidth;
    float* condition = second + 4 * kWidth;
    for (int i = threadIdx.x; i < kWidth; i += kUsers) {
        first[i] = embedding<kWidth>(timestep, i);
    }
    users_sync();  // the embedding is complete
    linear(ring, first, kWidth, 8, shared.step_bias,
           exchange + program.hidden + place.block() * 8);
    for (int i = threadIdx.x; i < 4 * kWidth; i += kUsers) {
        second[i] = mish(await(exchange + program.hidden + i));
    }
    users_sync();  // the second layer's input is complete
    linear(ring, second, 4 * kWidth, 2, shared.step_bias + 8,
           exchange + program.embedded + place.block() * 2);
    for (int i = threadIdx.x; i < kWidth + kObservation; i += kUsers) {
        condition[i] =
            mish(i < kWidth ? await(exchange + program.embedded + i) : observed);
    }
    users_sync();  // the condition is complete
    return condition;
}

// Biases of the linear layers: one load a thread.
template <int kWidth>
__device__ void load_biases(Shared& shared, const float* parameters,
                            Place<kWidth> place)
{
    const Program& program = shared.program;
    const int s = threadIdx.x / 16, half = threadIdx.x / 8 % 2, row = threadIdx.x % 8;
    const Film& film =
        s + 1 < kMostStages ? program.stage[s].next_film : program.first_film;
    if (row < film.rows) {
        shared.film_bias[s][half * 8 + row] =
            parameters[film.bias + half * film.channels + first_of(film, place) + row];
    }
    if (threadIdx.x < 10) {
        shared.step_bias[threadIdx.x] =
            parameters[threadIdx.x < 8
                           ? program.step_bias[0] + place.block() * 8 + threadIdx.x
                           : program.step_bias[1] + place.block() * 2 + threadIdx.x -
                                 8];
    }
}

template <int kWidth>
__device__ void run(Ring& ring, Shared& shared, const float* constants,
                    const float* parameters, float* exchange, const float* sample,
                    const int* timestep, const float* observation, float* noise,
                    Place<kWidth> place)
{
    const Program& program = shared.program;
    const int element = threadIdx.x;
    constexpr int kFirst = kWidth / kGroups * kSteps;  // elements of the first stage
    float2 first = {};
    if (element < kFirst) {
        first = first_sums<kWidth>(parameters, sample,
                                   place.group * (kWidth / kGroups) + element / kSteps,
                                   element % kSteps);
    }
    load_biases(shared, parameters, place);
    const int observed = element + (element < kWidth ? kUsers : 0) - kWidth;
    const float seen = observed < kObservation ? observation[max(observed, 0)] : 0.0f;
    const int step = timestep[0];
    wait_for_launch_before();  // all places are empty
    float kept = first.y, stored[2] = {};
    const float* condition =
        prepare_condition(ring, shared, exchange, step, seen, place);
    compute_film(ring, exchange, program.first_film, condition,
                 shared.film_bias[kMostStages - 1], place);
    mbarrier_wait(&shared.constants, 0);
    for (int s = 0; s < program.stages; ++s) {
        const Stage& stage = program.stage[s];
        if (s + 1 == program.stages && place.slice > 0) return;
        const int channels = stage.channels / kGroups;  // of the group
        const int count = channels * stage.length;
        const bool own = element < count;
        const int channel = own ? element / stage.length : 0;
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
        users_sync();  // the input of this stage is complete
        ring.turn =
            convolve_any(ring, stage.convolution, place, shared.rows[s % 2], exchange);
        if (stage.point.inputs > 0) {
            ring.turn =
                convolve_any(ring, stage.point, place, shared.rows[s % 2], exchange);
        }
        if (stage.next_film.channels > 0) {
            compute_film(ring, exchange, stage.next_film, condition,
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
    float* constants = reinterpret_cast<float*>(slots + kSlots * kSlotBytes);
    const Place<kWidth> place = {static_cast<int>(blockIdx.x) % kGroups,
                                 static_cast<int>(blockIdx.x) / kGroups};
    Ring ring = {slots, shared.full, shared.empty, 0};
    for (int i = threadIdx.x; i < sizeof(Program) / 4; i += kThreads) {
        reinterpret_cast<int*>(&shared.program)[i] =
            reinterpret_cast<const int*>(&kProgramInMemory<kWidth>)[i];
    }
    if (threadIdx.x == 0) {
        for (int slot = 0; slot < kSlots; ++slot) {
            mbarrier_init(shared.full + slot, 1);
            mbarrier_init(shared.empty + slot, kWarps);
        }
        mbarrier_init(&shared.constants, 1);
        fence_mbarrier_init();
    }
    __syncthreads();  // the program and the barriers are ready
    if (threadIdx.x >= kUsers) {
        fill_constants(shared, constants, parameters, place);
        fill_all(ring, shared.program, parameters, place);
        return;
    }
    run(ring, shared, constants, parameters, exchange, sample, timestep, observation,
        noise, place);
}
