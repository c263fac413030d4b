// All that the blocks take from the parameters, in the order in which they use it.
#pragma once
#include "block.cuh"

template <int kWidth>
__device__ void fill(Ring& ring, const float* parameters, const Convolution& c,
                     Place<kWidth> place)
{
    const float* weights = parameters + c.weight;
    const int inputs = c.inputs / c.segments / kGroups;
    for (int chunk = 0; chunk < c.chunks; ++chunk, ++ring.turn) {
        const int first = chunk * c.rows_a_chunk;
        const int count = min(c.rows_a_chunk, c.rows - first);
        const int output = place.slice * c.rows + first;
        if (c.kind == kUp) {
            char* slot = ring.begin_fill(inputs * c.row_bytes);
            copy_rows(slot, c.row_bytes + 16,
                      weights + (place.group * inputs * c.outputs + output) * 4,
                      c.outputs * 4, inputs, c.row_bytes, ring.filled());
        } else {
            char* slot = ring.begin_fill(count * c.row_bytes);
            const int taps = taps_of(c.kind);
            const int bytes = c.row_bytes / c.segments;
            for (int segment = 0; segment < c.segments; ++segment) {
                const int input = segment * c.inputs / 2 + place.group * inputs;
                copy_rows(slot + segment * bytes, c.row_bytes,
                          weights + (output * c.inputs + input) * taps, c.inputs * taps,
                          count, bytes, ring.filled());
            }
        }
    }
}

// Contiguous rows, as many chunks as it takes.
__device__ void fill_rows(Ring& ring, const float* from, int rows, int length)
{
    const int most = kSlotBytes / (8 * length) * 2;  // even, for their alignment
    for (int first = 0; first < rows; first += most, ++ring.turn) {
        const int bytes = min(most, rows - first) * length * 4;
        char* slot = ring.begin_fill(bytes);
        if (threadIdx.x % 32 == 0) {
            bulk_load(slot, from + first * length, bytes, ring.filled());
        }
    }
}

// The first of a block's scales; its shifts lie film.channels later.
template <int kWidth>
__device__ int first_of(const Film& film, Place<kWidth> place)
{
    return place.group * film.channels / kGroups + place.slice * film.rows;
}

template <int kWidth>
__device__ void fill_film(Ring& ring, const float* parameters, const Film& film,
                          Place<kWidth> place)
{
    constexpr int kInputs = kWidth + kObservation;
    for (int half = 0; half < 2; ++half) {
        const int row = half * film.channels + first_of(film, place);
        fill_rows(ring, parameters + film.weight + row * kInputs, film.rows, kInputs);
    }
}

template <int kWidth>
constexpr int constant_bytes()
{
    int bytes = 0;
    for (int s = 0; s < kProgram<kWidth>.stages; ++s) {
        const Stage& stage = kProgram<kWidth>.stage[s];
        const int tensors = 1 + (stage.gamma >= 0 ? 2 : 0) + (stage.residual_bias >= 0);
        bytes += tensors * stage.channels / kGroups * 4;
    }
    return bytes;
}

// What each channel of the group has of its own, for all stages: before the weights, or
// it would wait for all that the ring takes.
template <int kWidth>
__device__ void fill_constants(Shared& shared, float* to, const float* parameters,
                               Place<kWidth> place)
{
    const int lane = threadIdx.x % 32;
    if (lane == 0) mbarrier_arrive_expect(&shared.constants, constant_bytes<kWidth>());
    __syncwarp();
    for (int s = lane / 4; s < shared.program.stages; s += 8) {
        const Stage& stage = shared.program.stage[s];
        const int count = stage.channels / kGroups, which = lane % 4;
        int offset = stage.bias;
        if (which == 1) offset = stage.gamma;
        if (which == 2) offset = stage.beta;
        if (which == 3) offset = stage.residual_bias;
        if (offset >= 0) {
            bulk_load(to + stage.constants + which * count,
                      parameters + offset + place.group * count, count * 4,
                      &shared.constants);
        }
    }
}

template <int kWidth>
__device__ void fill_all(Ring& ring, const Program& program, const float* parameters,
                         Place<kWidth> place)
{
    fill_rows(ring, parameters + program.step_weight[0] + place.block() * 8 * kWidth, 8,
              kWidth);
    fill_rows(ring,
              parameters + program.step_weight[1] + place.block() * 2 * 4 * kWidth, 2,
              4 * kWidth);
    fill_film(ring, parameters, program.first_film, place);
    for (int s = 0; s < program.stages; ++s) {
        if (s + 1 == program.stages && place.slice > 0) return;
        const Stage& stage = program.stage[s];
        fill(ring, parameters, stage.convolution, place);
        if (stage.point.inputs > 0) fill(ring, parameters, stage.point, place);
        if (stage.next_film.channels > 0) {
            fill_film(ring, parameters, stage.next_film, place);
        }
    }
}
