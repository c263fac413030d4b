// Idea: a block owns whole outputs, whose weights lie in one run of memory.
// From the rung before: no partial sums; one warp streams runs of 20 KB into a ring;
// FiLM's values and residuals are summed while the block waits for the others.
// Requires: batch 1; width / 2 blocks of 2 * width + 32 threads, all on the GPU at the
// same time; after a launch of unet_empty.
#include "../../common/hopper/dependent.cuh"
#include "activation.cuh"
#include "exchange.cuh"
#include "products.cuh"

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

__device__ __forceinline__ float sum_of_lanes(float value)
{
#pragma unroll
    for (int apart = 16; apart > 0; apart /= 2) {
        value += __shfl_xor_sync(kAllLanes, value, apart);
    }
    return value;
}

// The mean of a group and one over its standard deviation, from 8 values a thread of
// `threads` neighbours: sums of squares about the mean are joined in pairs (Chan,
// Golub, LeVeque 1979).
template <int kWidth>
__device__ __forceinline__ float2 moments(const float (&value)[8], int threads,
                                          float2* of_warps)
{
    float mean = 0.0f, squares = 0.0f, count = 8.0f;
#pragma unroll
    for (int i = 0; i < 8; ++i) mean += value[i];
    mean *= 1.0f / 8;
#pragma unroll
    for (int i = 0; i < 8; ++i) squares += (value[i] - mean) * (value[i] - mean);
#pragma unroll
    for (int apart = 1; apart < 32; apart *= 2) {
        if (apart < threads) {
            const float other = __shfl_xor_sync(kAllLanes, mean, apart);
            const float more = __shfl_xor_sync(kAllLanes, squares, apart);
            const float off = other - mean;
            squares += more + off * off * (count / 2);
            mean = (mean + other) / 2;
            count *= 2;
        }
    }
    if (threads > 32) {
        const int warp = threadIdx.x / 32;
        if (threadIdx.x % 32 == 0) of_warps[warp] = make_float2(mean, squares);
        asm volatile("bar.sync %0, 64;" ::"r"(2 + warp / 2) : "memory");
        const float2 other = of_warps[warp ^ 1];
        const float off = other.x - mean;
        squares += other.y + off * off * (count / 2);
        mean = (mean + other.x) / 2;
        count *= 2;
    }
    return make_float2(mean, rsqrtf(squares / count + kEpsilon));
}

// One warp a row: outputs of a linear layer whose inputs lie in shared memory.
template <int kLength>
__device__ __forceinline__ float dot(const float* weights, const float* inputs)
{
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < kLength; i += 32) {
        const int at = i + threadIdx.x % 32;
        if (kLength % 32 == 0 || at < kLength) sum += weights[at] * inputs[at];
    }
    return sum_of_lanes(sum);
}

template <int kWidth>
__device__ __forceinline__ void compute_film(Ring& ring, const Film& film, float* exchange)
{
    constexpr int kInputs = kWidth + kObservation;
    const int rows = 2 * film.rows;
    const float* weights = ring.wait<kWidth>();
    for (int row = threadIdx.x / 32; row < rows; row += kTeams * kWidth / 32) {
        const float sum = dot<kInputs>(weights + row * kInputs, held<kWidth>().condition);
        if (threadIdx.x % 32 == 0) {
            hand_over(exchange + film.values + blockIdx.x * rows + row,
                      sum + weights[rows * kInputs + row]);
        }
    }
    ring.release();
}

// The vector that FiLM's layers take: two linear layers of the time step's embedding,
// then the observation, activated. `room`: 5 * kWidth floats.
template <int kWidth>
__device__ __forceinline__ void prepare_condition(Ring& ring,
                                                  const float* parameters,
                                                  float* exchange, float* room,
                                                  float observed)
{
    constexpr int kWarps = kTeams * kWidth / 32;
    const Program& program = held<kWidth>().program;
    float* hidden = room + kWidth;
    const int warp = threadIdx.x / 32;
    const float bias =
        warp < 2 ? parameters[program.step_bias[1] + blockIdx.x * 2 + warp] : 0.0f;
    const float* weights = ring.wait<kWidth>();
    for (int row = warp; row < 8; row += kWarps) {
        const float sum = dot<kWidth>(weights + row * kWidth, room);
        if (threadIdx.x % 32 == 0) {
            hand_over(exchange + program.hidden + blockIdx.x * 8 + row,
                      sum + weights[8 * kWidth + row]);
        }
    }
    ring.release();
    for (int i = threadIdx.x; i < 4 * kWidth; i += kTeams * kWidth) {
        hidden[i] = mish(await(exchange + program.hidden + i));
    }
    consumers_sync<kWidth>();  // the second layer's input is complete
    weights = ring.wait<kWidth>();
    if (warp < 2) {
        const float sum = dot<4 * kWidth>(weights + warp * 4 * kWidth, hidden);
        if (threadIdx.x % 32 == 0) {
            hand_over(exchange + program.embedded + blockIdx.x * 2 + warp, sum + bias);
        }
    }
    ring.release();
    for (int i = threadIdx.x; i < kWidth + kObservation; i += kTeams * kWidth) {
        held<kWidth>().condition[i] =
            mish(i < kWidth ? await(exchange + program.embedded + i) : observed);
    }
    consumers_sync<kWidth>();  // the condition is complete
}

// The first convolution, of two inputs, and the one with one tap that goes around it: 8
// positions a thread.
template <int kWidth>
__device__ __forceinline__ void first_sums(const float* parameters, const float* sample,
                                           float (&sum)[8], float (&around)[8])
{
    constexpr Program program = make_program<kWidth, 1>();
    const int channel = threadIdx.x / 2, first = threadIdx.x % 2 * 8;
    const float* weight = parameters + program.first_weight + channel * kAction * 5;
    const float* point = parameters + program.first_point_weight + channel * kAction;
    const float bias = parameters[program.first_bias + channel];
    const float point_bias = parameters[program.first_point_bias + channel];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        sum[i] = bias;
        around[i] = point_bias;
    }
#pragma unroll
    for (int j = 0; j < kAction; ++j) {
        float x[12];
#pragma unroll
        for (int i = 0; i < 12; ++i) {
            const int p = first + i - 2;
            x[i] = p >= 0 && p < kSteps ? sample[p * kAction + j] : 0.0f;
        }
#pragma unroll
        for (int i = 0; i < 8; ++i) {
#pragma unroll
            for (int t = 0; t < 5; ++t) sum[i] += weight[j * 5 + t] * x[i + t];
            around[i] += point[j] * x[i + 2];
        }
    }
}

// What a thread's elements have of their own: of two channels, or twice of one.
struct Norm {
    float gamma[2], beta[2];
    float bias, point_bias;  // of what this thread sums
};

__device__ __forceinline__ Norm norm_of(const Program& program, int s,
                                        const float* parameters)
{
    Norm norm = {};
    const Stage& stage = program.stage[s];
    const int element = 8 * threadIdx.x;
    if (stage.gamma >= 0 && element < stage.channels * stage.length) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int channel = (element + 4 * half) >> stage.log_length;
            norm.gamma[half] = parameters[stage.gamma + channel];
            norm.beta[half] = parameters[stage.beta + channel];
        }
    }
    const Convolution& c = stage.convolution;
    const int after = length_after(c.kind, c.length);
    const bool last = s + 1 == program.stages;
    if (threadIdx.x < c.rows * after) {
        norm.bias = parameters[(last ? program.out_bias : program.stage[s + 1].bias) +
                               blockIdx.x * (last ? 0 : c.rows) + threadIdx.x / after];
    }
    if (stage.point.inputs > 0 && threadIdx.x < c.rows * stage.length) {
        norm.point_bias =
            parameters[program.stage[s + 2].residual_bias + blockIdx.x * c.rows +
                       threadIdx.x / stage.length];
    }
    return norm;
}

// Mish of four values with one division by the product of their denominators: the
// quotients of a group's 4096 values take longer than all other steps of a norm.
__device__ __forceinline__ void mish(float* x)
{
    float square[4], after[5];
    after[4] = 1.0f;
#pragma unroll
    for (int i = 3; i >= 0; --i) {
        const float e = __expf(fminf(x[i], 10.0f));  // beyond, the tanh is one
        square[i] = e * (e + 2.0f);
        after[i] = after[i + 1] * (square[i] + 2.0f);
    }
    float inverse = __fdividef(1.0f, after[0]);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        x[i] *= square[i] * (inverse * after[i + 1]);
        inverse *= square[i] + 2.0f;
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
__device__ __forceinline__ void run(const float* parameters, float* exchange,
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
                  const float* __restrict__ parameters, float* __restrict__ noise,
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
