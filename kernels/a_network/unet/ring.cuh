// Streams a block's weights, in the order of their use, through a ring in shared
// memory. One warp, the producer, keeps the copy engine busy: weights depend on no
// result, so their loads need not wait for it. All other warps, the consumers, read
// each slot.
#pragma once
#include "../../common/hopper/tma.cuh"
#include "whole_program.cuh"

// The ring has a little over 8 * 80 * width bytes.
constexpr int kSlots = 32 / sizeof(Weight);
constexpr int kPiece = 16 / sizeof(Weight);  // the copy engine's smallest copy

__device__ __forceinline__ float as_float(float weight)
{
    return weight;
}

// The distance of FiLM biases from the last multiple of 16 bytes, in weights.
__device__ __forceinline__ int bias_before(int first)
{
    return first % kPiece;
}

struct Barriers {
    Barrier full[kSlots], empty[kSlots];

    __device__ void init(int consumers)
    {
        for (int i = 0; i < kSlots; ++i) {
            mbarrier_init(full + i, 1);
            mbarrier_init(empty + i, consumers);
        }
        fence_mbarrier_init();
    }
};

// Shared memory by name, not through a pointer, so that the compiler knows the address
// space in functions that are not inlined.
__device__ __forceinline__ Barriers& barriers()
{
    __shared__ Barriers of_block;
    return of_block;
}
template <int kWidth>
__device__ __forceinline__ Weight* slot(int i)
{
    extern __shared__ __align__(128) char slots_and_inputs[];
    return reinterpret_cast<Weight*>(slots_and_inputs) + i * slot_weights(kWidth);
}

// The position of a warp in the ring.
struct Ring {
    int next;  // index of the slot
    unsigned parity;  // of this round

    __device__ __forceinline__ void advance()
    {
        if (++next == kSlots) {
            next = 0;
            parity ^= 1;
        }
    }
    template <int kWidth>
    __device__ __forceinline__ const Weight* wait() const
    {
        mbarrier_wait(barriers().full + next, parity);
        return slot<kWidth>(next);
    }
    // Call when the warp has read the slot.
    __device__ __forceinline__ void release()
    {
        __syncwarp();
        if (threadIdx.x % 32 == 0) mbarrier_arrive(barriers().empty + next);
        advance();
    }
};

// Starts a copy of four weights.
__device__ __forceinline__ void copy_four(float* to, const float* from)
{
    copy_async<4>(to, from);
}

template <int kWidth>
struct Producer {
    const Weight* parameters;
    Ring ring;
    bool again;  // all slots have been filled once

    __device__ __forceinline__ Weight* acquire()
    {
        if (again) mbarrier_wait(barriers().empty + ring.next, ring.parity ^ 1);
        return slot<kWidth>(ring.next);
    }
    __device__ __forceinline__ void advance()
    {
        ring.advance();
        again = again || ring.next == 0;
    }

    // Copies `count` runs of `length` weights, `step` apart, then `more` from `other`.
    __device__ __forceinline__ void send(int from, int count, int length, int step,
                                         int other = 0, int more = 0)
    {
        const int lane = threadIdx.x % 32;
        Weight* to = acquire();
        Barrier* full = barriers().full + ring.next;
        if (lane == 0) {
            mbarrier_arrive_expect(full, sizeof(Weight) * (count * length + more));
        }
        __syncwarp();  // the barrier expects the bytes before any arrive
        if (lane < count) {
            bulk_load(to + lane * length, parameters + from + lane * step,
                      sizeof(Weight) * length, full);
        } else if (lane == count && more > 0) {
            bulk_load(to + count * length, parameters + other, sizeof(Weight) * more,
                      full);
        }
        advance();
    }

    // Copies the four weights of each of kWidth inputs for each of the block's outputs:
    // cp.async, because bulk copies would be too short.
    __device__ __forceinline__ void send_transposed(int from, int rows, int outputs)
    {
        Weight* to = acquire();
        Barrier* full = barriers().full + ring.next;
        for (int i = threadIdx.x % 32; i < kWidth * rows; i += 32) {
            const int input = i / rows, row = i % rows;
            copy_four(to + (row * kWidth + input) * 4,
                      parameters + from + (input * outputs + row) * 4);
        }
        asm volatile("cp.async.mbarrier.arrive.shared::cta.b64 [%0];" ::"r"(
                         shared_address(full))
                     : "memory");
        __syncwarp();  // all lanes' copies are counted
        if (threadIdx.x % 32 == 0) mbarrier_arrive(full);
        advance();
    }

    __device__ void send(const Convolution& c, int block)
    {
        if (c.kind == kUp) {
            for (int input = 0; input < c.inputs; input += kWidth) {
                send_transposed(c.weight + (input * c.outputs + block * c.rows) * 4,
                                c.rows, c.outputs);
            }
            return;
        }
        const int row = c.inputs * taps_of(c.kind), run = row / c.segments;
        const int rows = chunk_rows_of(c, kWidth);
        for (int segment = 0; segment < c.segments; ++segment) {
            for (int first = 0; first < c.rows; first += rows) {
                const int from =
                    c.weight + (block * c.rows + first) * row + segment * run;
                if (c.segments == 1) {
                    send(from, 1, rows * run, 0);
                } else {
                    send(from, rows, run, row);
                }
            }
        }
    }
    __device__ void send(const Film& film, int block)
    {
        const int rows = 2 * film.rows;
        send(film.weight + block * rows * (kWidth + kObservation), 1,
             rows * (kWidth + kObservation), 0,
             film.bias + block * rows - bias_before(block * rows), max(rows, kPiece));
    }

    // Copies the weights of the layers before the first stage.
    __device__ __forceinline__ void send_first(const Program& program, int block)
    {
        send(program.step_weight[0] + block * 8 * kWidth, 1, 8 * kWidth, 0,
             program.step_bias[0] + block * 8, 8);
        send(program.step_weight[1] + block * 8 * kWidth, 1, 8 * kWidth, 0);
        send(program.first_film, block);
    }
    __device__ __forceinline__ void send_stages(const Program& program, int block)
    {
        for (int s = 0; s < program.stages; ++s) {
            const Stage& stage = program.stage[s];
            if (s + 1 == program.stages && block > 0) return;
            send(stage.convolution, block);
            if (stage.point.inputs > 0) send(stage.point, block);
            if (stage.next_film.channels > 0) send(stage.next_film, block);
        }
    }
};
