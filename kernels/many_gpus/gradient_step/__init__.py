"""A data-parallel step of a fully connected layer: gradients of each GPU's samples are added up, then all step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from climb.bench.problem import Launch, Size, ceil_div
from climb.distributed.ladder import SharedLadder, SharedProblem, SharedRung
from climb.distributed.plan import (
    COMPUTE,
    MESSAGES,
    After,
    Arrays,
    Collective,
    Compute,
    Part,
    Place,
    Plan,
    Step,
)

FLOAT, QUAD = 4, 4
THREADS = 256
#: The learning rate.
RATE = 0.125
#: Parts of the gradient that are sent one after the other.
CHUNKS = 8
SOURCE = "gradient.cu"
#: CUDA's and NumPy's names of the types in which the gradient is sent.
SENT = {"float": "float32", "__half": "float16"}


def _inputs(size: Size, rng: np.random.Generator) -> dict[str, np.ndarray]:
    return {
        "before": rng.standard_normal((size["outputs"], size["inputs"]), dtype=np.float32),
        "delta": rng.standard_normal((size["samples"], size["outputs"]), dtype=np.float32),
        "input": rng.standard_normal((size["samples"], size["inputs"]), dtype=np.float32),
    }


def _reference(inputs: Mapping[str, np.ndarray], place: Place, size: Size) -> dict[str, np.ndarray]:
    """Every rank has all of the weights after the step."""
    gradient = inputs["delta"].T.astype(np.float64) @ inputs["input"].astype(np.float64) / size["samples"]
    return {"weights": inputs["before"] - RATE * gradient}


def _arrays(place: Place, size: Size) -> Arrays:
    samples, outputs, inputs = len(place.share(size["samples"])), size["outputs"], size["inputs"]
    return {
        "before": ((outputs, inputs), "float32"),
        "delta": ((samples, outputs), "float32"),
        "input": ((samples, inputs), "float32"),
        "weights": ((outputs, inputs), "float32"),
    }


def _share(inputs: Mapping[str, np.ndarray], place: Place, size: Size) -> dict[str, np.ndarray]:
    own = place.share(size["samples"])
    samples = slice(own.start, own.stop)
    return {"before": inputs["before"], "delta": inputs["delta"][samples], "input": inputs["input"][samples]}


def _workspace(kind: str) -> Callable[[Place, Size], Arrays]:
    return lambda place, size: {"gradient": ((size["outputs"], size["inputs"]), SENT[kind])}


def _plan(kind: str, chunks: int) -> Callable[[Place, Size], Plan]:
    """The gradient in chunks of rows; each is added up over all ranks while the next is computed."""

    def plan(place: Place, size: Size) -> Plan:
        outputs, inputs = size["outputs"], size["inputs"]
        samples = np.int32(len(place.share(size["samples"])))
        scale, rate = np.float32(1 / size["samples"]), np.float32(RATE)
        across = ceil_div(inputs, THREADS * QUAD)
        computed: list[Step] = []
        stepped: list[Step] = []
        for chunk in range(chunks):
            rows = Place(chunk, chunks).share(outputs)
            grid, first = (across, len(rows)), np.int32(rows.start)
            sizes = (samples, np.int32(outputs), np.int32(inputs), first, scale)
            gradient = ("delta", "input", "gradient", *sizes)
            step = ("before", "gradient", "weights", np.int32(inputs), first, rate)
            part = Part("gradient", rows.start * inputs, len(rows) * inputs)
            computed += [
                Compute(Launch(f"layer_gradient<{kind}>", grid, (THREADS,), gradient), COMPUTE),
                After(MESSAGES, COMPUTE),
                Collective("allReduce", part, part),
            ]
            stepped.append(Compute(Launch(f"layer_step<{kind}>", grid, (THREADS,), step), COMPUTE))
        return (*computed, After(COMPUTE, MESSAGES), *stepped)

    return plan


def _extents_fit(chunks: int) -> Callable[[Size, int], str | None]:
    def requires(size: Size, ranks: int) -> str | None:
        if size["inputs"] % QUAD:
            return f"inputs must be a multiple of {QUAD}, for loads of {QUAD} floats"
        if size["outputs"] < chunks:
            return f"outputs must be at least {chunks}, a row for each chunk"
        return None

    return requires


# A gradient rounded to half has a relative error of 2^-11, and is rounded once on each rank and once in each sum.
def _half_tolerance(size: Size) -> float:
    return RATE * 4 * 2.0**-11


def _rung(name: str, idea: str, kind: str, chunks: int, alone: bool = False, graph: bool = False) -> SharedRung:
    return SharedRung(
        name,
        idea,
        _plan(kind, chunks),
        SOURCE,
        _workspace(kind),
        _extents_fit(chunks),
        alone=alone,
        graph=graph,
        tolerance=_half_tolerance if kind == "__half" else None,
    )


problem = SharedProblem(
    name="gradient_step",
    title="Data-parallel step of a fully connected layer",
    size_keys=("samples", "inputs", "outputs"),
    make_inputs=_inputs,
    arrays=_arrays,
    share=_share,
    reference=_reference,
    # The sum over samples rounds as often as there are samples; the step and the weight round once each.
    tolerance=lambda size: 4 * 2.0**-24 * max(1.0, size["samples"] ** 0.5),
    flops=lambda size: 2 * size["samples"] * size["inputs"] * size["outputs"],
    bytes=lambda size: 3 * FLOAT * size["inputs"] * size["outputs"],
    headline=({"samples": 64, "inputs": 25088, "outputs": 4096}, {"samples": 64, "inputs": 4096, "outputs": 1024}),
    check=({"samples": 5, "inputs": 36, "outputs": 9}, {"samples": 3, "inputs": 8, "outputs": 16}),
)

shared_ladder = SharedLadder(
    problem,
    Path(__file__).parent,
    rungs=(
        _rung("one_gpu", "all samples on one GPU", "float", 1, alone=True),
        _rung("all_reduce", "gradients, then their sum, then the step", "float", 1),
        _rung("chunks", "a part of the sum while the next is computed", "float", CHUNKS),
        _rung("half", "messages in half precision", "__half", 1),
        _rung("half_chunks", "half precision, in parts", "__half", CHUNKS),
        _rung("graph", "half precision, in parts, as a CUDA graph", "__half", CHUNKS, graph=True),
    ),
)
