"""A U-Net: one pass of the network that the source's convolutions are from, all that lies between them included."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from climb.bench.ladder import Ladder
from climb.bench.problem import Argument, Problem, Rung, Size
from kernels.a_network.unet import launches
from kernels.a_network.unet.network import ACTION, OBSERVATION, STEPS, network, reference
from kernels.a_network.unet.peers import PEERS

FLOAT = 4
#: Channels of the first level, in the paper.
WIDTH = 256
#: The width for the emulator: the narrowest network whose rows of weights are multiples of 16 bytes.
NARROW = 32
#: Samples that the kernels' 32-bit offsets allow.
MOST_SAMPLES = 1024


def unet(batch: int, width: int = WIDTH) -> dict[str, int]:
    """A size: samples of a batch, channels of the first level."""
    return {"batch": batch, "width": width}


def _inputs(size: Size, rng: np.random.Generator) -> dict[str, np.ndarray]:
    batch = size["batch"]
    return {
        "sample": rng.standard_normal((batch, STEPS, ACTION), dtype=np.float32),
        "timestep": rng.integers(0, 100, batch, dtype=np.int32),
        "observation": rng.standard_normal((batch, OBSERVATION), dtype=np.float32),
        "parameters": network(size["width"]).random(rng),
    }


def _reference(inputs: dict[str, np.ndarray], size: Size) -> dict[str, np.ndarray]:
    names = "parameters", "sample", "timestep", "observation"
    return {"noise": reference(size["width"], *(inputs[name] for name in names))}


def _tolerance(size: Size) -> float:
    """The tolerance for one convolution (the ladder conv1d), with the sums of all layers one after the other.

    A sum of n products rounds n times, by at most 2^-24 of a partial sum, and the errors add up like a random walk; a
    norm sets the scale anew after each layer, so that errors of earlier layers neither grow nor vanish.
    """
    net = network(size["width"])
    return 4 * 2.0**-24 * sum(conv.shape[1] * conv.taps for conv in net.convolutions) ** 0.5


def _bytes(size: Size) -> int:
    batch = size["batch"]
    return FLOAT * (network(size["width"]).parameters + batch * (2 * STEPS * ACTION + 1 + OBSERVATION))


problem = Problem(
    name="unet",
    title="A U-Net of one dimension, one pass",
    size_keys=("batch", "width"),
    arguments=(
        Argument("sample", "float32", ("batch", lambda size: STEPS, lambda size: ACTION)),
        Argument("timestep", "int32", ("batch",)),
        Argument("observation", "float32", ("batch", lambda size: OBSERVATION)),
        Argument("parameters", "float32", (lambda size: network(size["width"]).size,)),
        Argument("noise", "float32", ("batch", lambda size: STEPS, lambda size: ACTION), role="output"),
    ),
    make_inputs=_inputs,
    reference=_reference,
    tolerance=_tolerance,
    flops=lambda size: 2 * size["batch"] * network(size["width"]).products,
    bytes=_bytes,
    headline=(unet(1),),
    sweep=tuple(unet(batch) for batch in (2, 4, 8, 16, 32)),
    check=(unet(3, NARROW), unet(1, NARROW)),
    parameters=("width",),
)


def _requires(size: Size) -> str | None:
    if size["width"] % NARROW or size["width"] > WIDTH:
        return f"width is a multiple of {NARROW}, up to {WIDTH}"
    if size["batch"] > MOST_SAMPLES:
        return f"batch is at most {MOST_SAMPLES}"
    return None


def _one_sample(size: Size) -> str | None:
    return _requires(size) or (None if size["batch"] == 1 else "batch is 1")


def _one_sample_of_a_power_of_two(size: Size) -> str | None:
    power = size["width"].bit_count() == 1
    return _one_sample(size) or (None if power else "width is a power of two")


#: The rungs after the first read the parameters in quads, and have Hopper instructions.
HopperRung = partial(Rung, alignment={"parameters": 16}, capability="9.0")

ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        Rung(
            "per_operation",
            "a kernel for each operation",
            launches.per_operation,
            workspace=launches.results,
            requires=_requires,
        ),
        HopperRung(
            "fused",
            "what lies between convolutions is part of the next one",
            launches.fused,
            workspace=launches.activations,
            requires=_requires,
        ),
        HopperRung(
            "graph",
            "all launches as one graph",
            launches.graph,
            workspace=launches.activations,
            requires=_requires,
        ),
        HopperRung(
            "dependent",
            "launches start early and fetch their weights",
            launches.dependent,
            workspace=launches.activations,
            requires=_requires,
        ),
        HopperRung(
            "persistent",
            "one launch: blocks stay, weights stream through a ring",
            launches.persistent,
            workspace=launches.exchange,
            requires=_one_sample,
        ),
        HopperRung(
            "output_stationary",
            "a block owns whole outputs, weights come in long runs",
            launches.output_stationary,
            workspace=launches.whole_sums,
            requires=_one_sample_of_a_power_of_two,
        ),
        HopperRung(
            "in_registers",
            "a thread multiplies what it has normalised",
            launches.in_registers,
            workspace=launches.whole_sums,
            requires=_one_sample_of_a_power_of_two,
        ),
    ),
    peers=PEERS,
)
