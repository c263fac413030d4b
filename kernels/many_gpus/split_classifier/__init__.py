"""A fully connected layer, one sample, whose weights are cut over several GPUs. It is short, so latency decides."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from climb.bench.problem import Launch, Size
from climb.distributed.ladder import SharedLadder, SharedProblem, SharedRung
from climb.distributed.plan import (
    COMPUTE,
    Arrays,
    Collective,
    Compute,
    Part,
    Place,
    Plan,
)
from kernels.classifier.classifier.launches import row_blocks

FLOAT = 4
SOURCE = "../../classifier/classifier/11_launch_bounds.cu"


def _inputs(size: Size, rng: np.random.Generator) -> dict[str, np.ndarray]:
    return {
        "weights": rng.standard_normal((size["outputs"], size["inputs"]), dtype=np.float32),
        "input": rng.standard_normal(size["inputs"], dtype=np.float32),
    }


def _reference(inputs: Mapping[str, np.ndarray], place: Place, size: Size) -> dict[str, np.ndarray]:
    """Every rank has the whole output, as the next layer needs it."""
    return {"output": inputs["weights"].astype(np.float64) @ inputs["input"].astype(np.float64)}


def _launches(inputs: int, outputs: int, output: Part) -> list[Compute]:
    """The kernel of classifier's rung ``launch_bounds``."""
    found = []
    for launch in row_blocks("classifier_launch_bounds")({"inputs": inputs, "outputs": outputs, "batch": 1}):
        args = tuple(output if isinstance(arg, str) and arg == "output" else arg for arg in launch.args)
        found.append(Compute(Launch(launch.kernel, launch.grid, launch.block, args, launch.shared_mem), COMPUTE))
    return found


# Some outputs a rank: rows of the weights.


def _rows_arrays(place: Place, size: Size) -> Arrays:
    own = len(place.share(size["outputs"]))
    return {
        "weights": ((own, size["inputs"]), "float32"),
        "input": ((size["inputs"],), "float32"),
        "output": ((size["outputs"],), "float32"),
    }


def _rows_share(inputs: Mapping[str, np.ndarray], place: Place, size: Size) -> dict[str, np.ndarray]:
    own = place.share(size["outputs"])
    return {"weights": inputs["weights"][own.start : own.stop], "input": inputs["input"]}


def _rows(place: Place, size: Size) -> Plan:
    """Every rank computes its outputs in their place, and all gather the others'."""
    own = place.share(size["outputs"])
    mine = Part("output", own.start, len(own))
    gather = Collective("allGather", mine, Part("output", 0, size["outputs"]), COMPUTE)
    return (*_launches(size["inputs"], len(own), mine), *([gather] if place.ranks > 1 else []))


# Some inputs a rank: columns of the weights.


def _columns_arrays(place: Place, size: Size) -> Arrays:
    own = len(place.share(size["inputs"]))
    return {
        "weights": ((size["outputs"], own), "float32"),
        "input": ((own,), "float32"),
        "output": ((size["outputs"],), "float32"),
    }


def _columns_share(inputs: Mapping[str, np.ndarray], place: Place, size: Size) -> dict[str, np.ndarray]:
    own = place.share(size["inputs"])
    columns = slice(own.start, own.stop)
    return {"weights": np.ascontiguousarray(inputs["weights"][:, columns]), "input": inputs["input"][columns]}


def _columns(place: Place, size: Size) -> Plan:
    """Every rank has a part of every sum, and all of them are added up."""
    whole = Part("output", 0, size["outputs"])
    launches = _launches(len(place.share(size["inputs"])), size["outputs"], whole)
    return (*launches, Collective("allReduce", whole, whole, COMPUTE))


def _outputs_divide(size: Size, ranks: int) -> str | None:
    if size["outputs"] % ranks:
        return f"outputs must be a multiple of {ranks}: every rank gives as many"
    return None


def _inputs_suffice(size: Size, ranks: int) -> str | None:
    return None if size["inputs"] >= ranks else f"inputs must be at least {ranks}, so that every rank has some"


problem = SharedProblem(
    name="split_classifier",
    title="Fully connected layer over several GPUs, one sample, float32",
    size_keys=("inputs", "outputs"),
    make_inputs=_inputs,
    arrays=_rows_arrays,
    share=_rows_share,
    reference=_reference,
    tolerance=lambda size: 4 * 2.0**-24 * max(1.0, size["inputs"] ** 0.5),
    flops=lambda size: 2 * size["inputs"] * size["outputs"],
    bytes=lambda size: FLOAT * (size["inputs"] * size["outputs"] + size["inputs"] + size["outputs"]),
    # VGG's first and second layer and the report's, and one four times as large as the first.
    headline=(
        {"inputs": 25088, "outputs": 4096},
        {"inputs": 4096, "outputs": 4096},
        {"inputs": 4096, "outputs": 1024},
        {"inputs": 25088, "outputs": 16384},
    ),
    check=({"inputs": 64, "outputs": 12}, {"inputs": 30, "outputs": 6}),
)

_BY_INPUTS = {"requires": _inputs_suffice, "arrays": _columns_arrays, "share": _columns_share}

shared_ladder = SharedLadder(
    problem,
    Path(__file__).parent,
    rungs=(
        SharedRung("one_gpu", "the whole layer on one GPU", _rows, SOURCE, alone=True),
        SharedRung("outputs", "rows of the weights, then gather", _rows, SOURCE, requires=_outputs_divide),
        SharedRung("inputs", "columns of the weights, then add up", _columns, SOURCE, **_BY_INPUTS),
        SharedRung("outputs_graph", "by outputs, as a CUDA graph", _rows, SOURCE, requires=_outputs_divide, graph=True),
        SharedRung("inputs_graph", "by inputs, as a CUDA graph", _columns, SOURCE, graph=True, **_BY_INPUTS),
    ),
)
