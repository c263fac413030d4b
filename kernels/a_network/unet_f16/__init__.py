"""The network of the ladder ``unet`` with its parameters stored in float16; activations and sums are float32."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from climb import load_ladder
from climb.bench.ladder import Ladder
from climb.bench.problem import Size
from kernels.a_network.unet.network import network

OF_FLOATS = load_ladder("unet")
#: Bytes of a parameter less than in float32.
SAVED = 2


def _inputs(size: Size, rng: np.random.Generator) -> dict[str, np.ndarray]:
    inputs = OF_FLOATS.problem.make_inputs(size, rng)
    return {**inputs, "parameters": inputs["parameters"].astype(np.float16)}


problem = replace(
    OF_FLOATS.problem,
    name="unet_f16",
    title="A U-Net of one dimension, one pass, parameters in float16",
    arguments=tuple(
        replace(argument, dtype="float16") if argument.name == "parameters" else argument
        for argument in OF_FLOATS.problem.arguments
    ),
    make_inputs=_inputs,
    # The reference takes the rounded parameters, so that the bound is that of float32 sums.
    bytes=lambda size: OF_FLOATS.problem.bytes(size) - SAVED * network(size["width"]).parameters,
    sweep=(),
    check=OF_FLOATS.problem.check[1:],
)

ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        replace(
            OF_FLOATS["output_stationary"].rung,
            idea="weights of two bytes, sums in float32",
        ),
    ),
)
