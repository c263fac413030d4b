// The parameters that a block needs.
#pragma once
#include "block.cuh"

constexpr int kNever = 1 << 30;

// Rows of a linear layer: `length` floats each, in `segments` copies.
__device__ __forceinline__ Part linear_rows(int from, int rows, int length,
                                            int segments)
{
    const int each = length / segments;
    return {from, length, rows, kNever, 0, segments, each, each / 4, 4};
}

// The index of a block's first scale; its first shift is film.channels later.
template <int kWidth>
__device__ __forceinline__ int first_of(const Film& film, Place<kWidth> place)
{
    return place.group * film.channels / kGroups + place.slice * film.rows;
}

// The rows of the block's scales, then of its shifts. They are 8-byte aligned.
template <int kWidth>
__device__ __forceinline__ Part film_rows(const Film& film, Place<kWidth> place)
{
    constexpr int kInputs = kWidth + kObservation;
    return {film.weight + first_of(film, place) * kInputs,
            kInputs,
            2 * film.rows,
            film.rows,
            (film.channels - film.rows) * kInputs,
            1,
            0,
            -kInputs / 2,
            2};
}

// The weights of the block's outputs for its group of inputs.
template <int kWidth>
__device__ __forceinline__ Part filters(const Convolution& c, Place<kWidth> place)
{
    const int taps = taps_of(c.kind), inputs = c.inputs / c.segments / kGroups;
    const int output = place.slice * c.rows, input = place.group * inputs;
    const int rows = c.outputs == kAction && place.slice > 0 ? 0 : c.rows;
    if (c.kind == kUp) {  // a piece is an output's four weights of one input
        return {c.weight + (input * c.outputs + output) * 4,
                4,
                rows,
                kNever,
                0,
                1,
                0,
                inputs,
                c.outputs * 4};
    }
    return {c.weight + (output * c.inputs + input) * taps,
            c.inputs * taps,
            rows,
            kNever,
            0,
            c.segments,
            c.inputs / 2 * taps,
            inputs * taps / 4,
            4};
}

// Lists all rows of weights in the order of their use: one thread per stage.
template <int kWidth>
__device__ void list_parts(Part* parts, const Program& program, Place<kWidth> place)
{
    const int s = threadIdx.x;
    if (s < program.stages) {
        const Stage& stage = program.stage[s];
        Part* own = parts + 3 + 3 * s;
        own[0] = filters(stage.convolution, place);
        own[1].rows = own[2].rows = 0;
        if (stage.point.inputs > 0) own[1] = filters(stage.point, place);
        if (stage.next_film.channels > 0) own[2] = film_rows(stage.next_film, place);
    } else if (s == program.stages) {
        parts[0] = linear_rows(program.step_weight[0] + place.block() * 8 * kWidth, 8,
                               kWidth, 1);
        parts[1] = linear_rows(program.step_weight[1] + place.block() * 2 * 4 * kWidth,
                               2, 4 * kWidth, 2);
        parts[2] = film_rows(program.first_film, place);
    }
}

// Copies the constants of the group's channels for all stages: one warp per stage.
template <int kWidth>
__device__ void copy_constants(float* to, const Program& program,
                               const float* parameters, Place<kWidth> place)
{
    for (int s = threadIdx.x / 32; s < program.stages; s += kWarps) {
        const Stage& stage = program.stage[s];
        const int count = stage.channels / kGroups, pieces = count / 4;
        for (int i = threadIdx.x % 32; i < 4 * pieces; i += 32) {
            const int which = i / pieces;
            const int offset = which == 0   ? stage.bias
                               : which == 1 ? stage.gamma
                               : which == 2 ? stage.beta
                                            : stage.residual_bias;
            if (offset >= 0) {
                copy_async<4>(
                    to + stage.constants + i * 4,
                    parameters + offset + place.group * count + i % pieces * 4);
            }
        }
    }
    close_group();
}

// Loads the biases of the linear layers: one load per thread.
template <int kWidth>
__device__ void load_biases(Shared& shared, const float* parameters,
                            Place<kWidth> place)
{
    const Program& program = shared.program;
    const int s = threadIdx.x / 16, row = threadIdx.x % 16;
    const Film& film =
        s + 1 < kMostStages ? program.stage[s].next_film : program.first_film;
    if (row < 2 * film.rows) {
        const int shift = row >= film.rows ? film.channels - film.rows : 0;
        shared.film_bias[s][row] =
            parameters[film.bias + first_of(film, place) + row + shift];
    }
    if (threadIdx.x < 10) {
        shared.step_bias[threadIdx.x] =
            parameters[threadIdx.x < 8
                           ? program.step_bias[0] + place.block() * 8 + threadIdx.x
                           : program.step_bias[1] + place.block() * 2 + threadIdx.x -
                                 8];
    }
}
