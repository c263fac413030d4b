"""The cost of a message between two GPUs: every rank sends to the next, and receives from the one before."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from climb.bench.problem import Launch, Size, ceil_div
from climb.distributed.ladder import SharedLadder, SharedProblem, SharedRung
from climb.distributed.plan import (
    COMPUTE,
    Arrays,
    Barrier,
    Compute,
    Copy,
    Exchange,
    Part,
    Peer,
    Place,
    Plan,
    Receive,
    Send,
    Step,
)

FLOAT, QUAD = 4, 4
THREADS = 256
#: Blocks of a copying kernel at most: four on each SM of an H200. Results do not depend on it.
BLOCKS = 4 * 132
#: Whole numbers below this are exact in float32, with the rank added too.
EXACT = 1 << 20


def _inputs(size: Size, rng: np.random.Generator) -> dict[str, np.ndarray]:
    return {"message": rng.integers(0, EXACT, size["n"]).astype(np.float32)}


def _arrays(place: Place, size: Size) -> Arrays:
    return {"source": ((size["n"],), "float32"), "target": ((size["n"],), "float32")}


def _share(inputs: Mapping[str, np.ndarray], place: Place, size: Size) -> dict[str, np.ndarray]:
    return {"source": inputs["message"] + np.float32(place.rank)}


def _before(place: Place) -> int:
    return (place.rank - 1) % place.ranks


def _after(place: Place) -> int:
    return (place.rank + 1) % place.ranks


def _reference(inputs: Mapping[str, np.ndarray], place: Place, size: Size) -> dict[str, np.ndarray]:
    return {"target": inputs["message"].astype(np.float64) + _before(place)}


problem = SharedProblem(
    name="exchange",
    title="Messages between GPUs, both ways at once",
    size_keys=("n",),
    make_inputs=_inputs,
    arrays=_arrays,
    share=_share,
    reference=_reference,
    tolerance=lambda size: 0.0,
    flops=lambda size: 0,
    # What one GPU sends; it receives as much at the same time.
    bytes=lambda size: FLOAT * size["n"],
    headline=tuple({"n": 4**power} for power in (0, 4, 6, 8, 9, 10, 11, 12, 13)),
    check=({"n": 1}, {"n": 3}, {"n": 1030}),
)


def _whole(size: Size) -> tuple[Part, Part]:
    return Part("source", 0, size["n"]), Part("target", 0, size["n"])


def _nccl(place: Place, size: Size) -> Plan:
    """One group: a send and a receive. A rank by itself copies."""
    source, target = _whole(size)
    if place.ranks == 1:
        return (Copy(target, source),)
    return (Exchange("exchange", (Send(source, _after(place)), Receive(target, _before(place))), COMPUTE),)


def _copy_engine(place: Place, size: Size) -> Plan:
    """The copy engine fetches what the rank before has. That rank's data were complete before the run began."""
    source, target = _whole(size)
    return (Copy(target, source, rank=None if place.ranks == 1 else _before(place)),)


def _launch(size: Size, source: Any, target: Any) -> Step:
    quads = ceil_div(size["n"], QUAD)
    grid = (min(BLOCKS, ceil_div(quads, THREADS)),)
    return Compute(Launch("copy_floats", grid, (THREADS,), (source, target, np.int32(size["n"]))))


def _loads(place: Place, size: Size) -> Plan:
    """A kernel reads the memory of the rank before."""
    return (_launch(size, Peer("source", _before(place)), "target"),)


def _stores(place: Place, size: Size) -> Plan:
    """A kernel writes into the memory of the rank after. The barrier says that what was written here is complete."""
    return (_launch(size, "source", Peer("target", _after(place))), Barrier(COMPUTE))


SOURCE = "copy_floats.cu"
MAPPED = ("source", "target")

shared_ladder = SharedLadder(
    problem,
    Path(__file__).parent,
    rungs=(
        SharedRung("nccl", "a send and a receive, from Python", _nccl, SOURCE),
        SharedRung("nccl_graph", "the same as a CUDA graph", _nccl, SOURCE, graph=True),
        SharedRung("copy_engine", "the copy engine fetches", _copy_engine, SOURCE, shared=MAPPED),
        SharedRung("peer_loads", "a kernel reads over the link", _loads, SOURCE, shared=MAPPED),
        SharedRung("peer_stores", "a kernel writes over the link", _stores, SOURCE, shared=MAPPED),
    ),
)
