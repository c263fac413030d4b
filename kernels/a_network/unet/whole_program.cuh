// The program for blocks that own whole outputs: as in program.cuh, but with one sum in
// place of eight partial sums, and FiLM values computed one stage earlier.
#pragma once
#include "program.cuh"

// A slot of the ring holds the longest row of a segment, 4 * width channels with 5
// taps, or the FiLM rows and biases of a block.
constexpr int slot_weights(int width)
{
    return 20 * width + 64;
}
// Rows of one segment that a slot holds: a power of two.
constexpr int chunk_rows_of(const Convolution& c, int width)
{
    int rows = c.rows;
    while (rows * (c.inputs / c.segments) * taps_of(c.kind) > slot_weights(width)) {
        rows /= 2;
    }
    return rows;
}

template <int kWidth>
constexpr Program make_whole_program()
{
    Program program = make_program<kWidth>();
    int at = 0;
    program.hidden = at;
    program.embedded = at += 4 * kWidth;
    program.first_film.values = program.stage[0].film = at += kWidth;
    at += 2 * kWidth;
    for (int s = 0; s < program.stages; ++s) {
        Stage& stage = program.stage[s];
        Convolution &c = stage.convolution, &point = stage.point;
        c.sums = at;
        at += c.outputs * length_after(c.kind, c.length);
        if (s + 1 < program.stages) {
            c.rows /= kGroups;
            program.stage[s + 1].sums = c.sums;
        }
        if (point.inputs > 0) {
            point.rows /= kGroups;
            point.sums = program.stage[s + 2].residual_sums = at;
            at += point.outputs * point.length;
        }
        if (stage.next_film.channels > 0) {
            stage.next_film.values = program.stage[s + 1].film = at;
            at += 2 * stage.next_film.channels;
            program.stage[s - 1].next_film = stage.next_film;
            stage.next_film = Film{};
        }
    }
    program.exchange = at;
    return program;
}
