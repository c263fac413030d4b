// The network as a program: its stages in order, and the offsets of their parameters
// and partial sums. Layers and the order of tensors are those of network.py.
//
// A stage reads the sums of the previous convolution, normalises and activates them,
// and convolves the result. Each of eight blocks holds one group of channels, so a
// stage writes partial sums, one per group.
#pragma once

#include "layers.cuh"

enum Residual : int { kNoResidual, kKeptResidual, kSummedResidual };

struct Convolution {
    Kind kind;
    int inputs, outputs, length;  // all channels; the length of an input row
    int segments;  // 2 if half of the inputs come from a stored tensor
    int weight;  // offset in the parameters
    int sums;  // offset in the exchange: 8 groups of outputs x length
    int rows;  // outputs per block
};

struct Film {
    int channels, weight, bias;
    int values;  // offset in the exchange: scales, then shifts
    int rows;  // scales per block, and as many shifts
};

struct Stage {
    int channels, length, sums;  // of the input
    int log_length;
    int bias, gamma, beta;  // gamma < 0: no norm and no activation
    int film;  // offset in the exchange; < 0: none
    Residual residual;
    int residual_sums, residual_bias;
    int constants;  // offset in shared memory: four floats per channel of a group
    bool keep;  // keep the activated input as the block's residual
    int store, skip;  // the stored tensor to write, to read; < 0: none
    Convolution convolution, point;  // point.inputs = 0: none
    Film next_film;  // channels = 0: none
};

constexpr int kMostStages = 32;

struct Program {
    Stage stage[kMostStages];
    int stages;
    // Before the first stage: the time step's layers and the first convolution.
    int step_weight[2], step_bias[2];
    int hidden, embedded;  // offsets in the exchange
    int first_weight, first_bias, first_gamma, first_beta;
    int first_point_weight, first_point_bias;
    Film first_film;
    int out_bias, out_sums;
    int exchange, constants;  // sizes in floats
};

struct Builder {
    int width;
    int parameter, exchange, constants;
    Program program;

    constexpr int tensor(int size)
    {
        const int at = parameter;
        parameter += (size + 31) / 32 * 32;
        return at;
    }
    constexpr int values(int count)
    {
        const int at = exchange;
        exchange += count;
        return at;
    }
    constexpr void add(Stage stage)
    {
        stage.constants = constants;
        while (1 << stage.log_length < stage.length) ++stage.log_length;
        constants += 4 * stage.channels / kGroups;
        program.stage[program.stages++] = stage;
    }
    constexpr Film film(int channels)
    {
        Film made{};
        made.channels = channels;
        made.weight = tensor(2 * channels * (width + kObservation));
        made.bias = tensor(2 * channels);
        made.values = values(2 * channels);
        made.rows = 2 * channels / width;
        return made;
    }
};

// A convolution. `bias` is set to its bias, which the next stage adds.
constexpr Convolution convolution(Builder& to, Kind kind, int inputs, int outputs,
                                  int length, int segments, int& bias)
{
    Convolution made{};
    made.kind = kind;
    made.inputs = inputs;
    made.outputs = outputs;
    made.length = length;
    made.segments = segments;
    made.weight = to.tensor(inputs * outputs * taps_of(kind));
    bias = to.tensor(outputs);
    made.sums = to.values(kGroups * outputs * length_after(kind, length));
    made.rows = outputs == kAction ? kAction : outputs / (to.width / 16);
    return made;
}

// The stage that reads the sums of `before`.
constexpr Stage after(const Convolution& before, int bias)
{
    Stage made{};
    made.channels = before.outputs;
    made.length = length_after(before.kind, before.length);
    made.sums = before.sums;
    made.bias = bias;
    made.gamma = made.beta = made.film = made.store = made.skip = -1;
    made.residual_bias = -1;
    return made;
}

// Adds one stage for each of a block's two convolutions. `input` becomes the first
// one's stage; on return it is the stage that reads the block's result.
constexpr void block(Builder& to, Stage& input, int outputs, int skip, int store)
{
    int bias = 0;
    const int segments = skip < 0 ? 1 : 2;
    const int inputs = segments * input.channels;
    input.skip = skip;
    input.keep = inputs == outputs;
    input.convolution =
        convolution(to, kSame, inputs, outputs, input.length, segments, bias);
    Stage second = after(input.convolution, bias);
    second.gamma = to.tensor(outputs);
    second.beta = to.tensor(outputs);
    input.next_film = to.film(outputs);
    second.film = input.next_film.values;
    int residual_bias = -1;
    if (inputs != outputs) {
        input.point = convolution(to, kPoint, inputs, outputs, input.length, segments,
                                  residual_bias);
    }
    to.add(input);
    second.convolution =
        convolution(to, kSame, outputs, outputs, input.length, 1, bias);
    Stage result = after(second.convolution, bias);
    result.gamma = to.tensor(outputs);
    result.beta = to.tensor(outputs);
    result.residual = inputs == outputs ? kKeptResidual : kSummedResidual;
    result.residual_sums = input.point.sums;
    result.residual_bias = residual_bias;
    result.store = store;
    to.add(second);
    input = result;
}

constexpr void sample(Builder& to, Stage& input, Kind kind)
{
    int bias = 0;
    input.convolution =
        convolution(to, kind, input.channels, input.channels, input.length, 1, bias);
    to.add(input);
    input = after(input.convolution, bias);
}

template <int kWidth>
constexpr Program make_program()
{
    Builder to{};
    to.width = kWidth;
    Program& program = to.program;
    program.step_weight[0] = to.tensor(kWidth * 4 * kWidth);
    program.step_bias[0] = to.tensor(4 * kWidth);
    program.step_weight[1] = to.tensor(kWidth * 4 * kWidth);
    program.step_bias[1] = to.tensor(kWidth);
    program.hidden = to.values(4 * kWidth);
    program.embedded = to.values(kWidth);
    // The first convolution has only two inputs, so every block computes its own group.
    program.first_weight = to.tensor(kAction * kWidth * 5);
    program.first_bias = to.tensor(kWidth);
    program.first_gamma = to.tensor(kWidth);
    program.first_beta = to.tensor(kWidth);
    program.first_film = to.film(kWidth);
    program.first_point_weight = to.tensor(kAction * kWidth);
    program.first_point_bias = to.tensor(kWidth);
    int bias = 0;
    Stage stage{};
    stage.channels = kWidth;
    stage.length = kSteps;
    stage.sums = -1;
    stage.bias = program.first_bias;
    stage.gamma = program.first_gamma;
    stage.beta = program.first_beta;
    stage.film = program.first_film.values;
    stage.store = stage.skip = stage.residual_bias = -1;
    stage.convolution = convolution(to, kSame, kWidth, kWidth, kSteps, 1, bias);
    to.add(stage);
    stage = after(stage.convolution, bias);
    stage.gamma = to.tensor(kWidth);
    stage.beta = to.tensor(kWidth);
    stage.residual = kKeptResidual;
    block(to, stage, kWidth, -1, -1);
    sample(to, stage, kDown);
    block(to, stage, 2 * kWidth, -1, -1);
    block(to, stage, 2 * kWidth, -1, 0);
    sample(to, stage, kDown);
    block(to, stage, 4 * kWidth, -1, -1);
    block(to, stage, 4 * kWidth, -1, 1);
    block(to, stage, 4 * kWidth, -1, -1);
    block(to, stage, 4 * kWidth, -1, -1);
    block(to, stage, 2 * kWidth, 1, -1);
    block(to, stage, 2 * kWidth, -1, -1);
    sample(to, stage, kUp);
    block(to, stage, kWidth, 0, -1);
    block(to, stage, kWidth, -1, -1);
    sample(to, stage, kUp);
    stage.convolution = convolution(to, kSame, kWidth, kWidth, kSteps, 1, bias);
    to.add(stage);
    stage = after(stage.convolution, bias);
    stage.gamma = to.tensor(kWidth);
    stage.beta = to.tensor(kWidth);
    stage.convolution =
        convolution(to, kPoint, kWidth, kAction, kSteps, 1, program.out_bias);
    to.add(stage);
    program.out_sums = stage.convolution.sums;
    program.exchange = to.exchange;
    program.constants = to.constants;
    return program;
}
