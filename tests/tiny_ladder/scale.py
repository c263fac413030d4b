"""y = 2 x + 1 on float32: right rungs in ``ladder``, wrong ones in ``faulty``."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from climb.bench.ladder import Ladder
from climb.bench.problem import Argument, Launch, Peer, Problem, Rung

FOLDER = Path(__file__).parent
BLOCK = 64

problem = Problem(
    name="scale",
    title="y = 2 x + 1",
    size_keys=("n",),
    arguments=(Argument("y", "float32", ("n",), "output"), Argument("x", "float32", ("n",))),
    make_inputs=lambda size, rng: {"x": rng.standard_normal(size["n"], dtype=np.float32)},
    reference=lambda inputs, size: {"y": 2.0 * inputs["x"].astype(np.float64) + 1.0},
    tolerance=lambda size: 1e-6,  # one rounding each of a product and a sum in float32, 2^-24 apiece
    flops=lambda size: 2 * size["n"],
    bytes=lambda size: 8 * size["n"],
    headline=({"n": 1024}, {"n": 1023}),
    check=({"n": 1}, {"n": 65}),
)


def _launch(kernel: str, n: int, args: tuple[str, ...], per_thread: int = 1) -> Launch:
    blocks = -(-n // (BLOCK * per_thread))
    return Launch(kernel, (blocks,), (BLOCK,), (*args, np.int32(n)))


def _one(kernel: str, source: str, per_thread: int = 1, **more: object) -> Rung:
    return Rung(kernel, kernel, lambda s: (_launch(kernel, s["n"], ("y", "x"), per_thread),), **more, source=source)


plain = _one("plain", "plain.cu")
vector = _one(
    "vector",
    "vector.cu",
    per_thread=4,
    alignment={"x": 16, "y": 16},
    requires=lambda s: None if s["n"] % 4 == 0 else f"n = {s['n']} is no multiple of 4",
)
twice = Rung(
    "twice",
    "two launches",
    lambda s: (_launch("doubled", s["n"], ("t", "x")), _launch("plus_one", s["n"], ("y", "t"))),
    workspace=lambda s: {"t": ((s["n"],), "float32")},
    source="twice.cu",
)


def _prepare(arrays, size):
    return Ladder(problem, FOLDER, (plain,))["plain"].prepare(arrays, size)


library = Peer("library", _prepare, lambda: {"name": "None", "version": "1", "algorithm": "plain", "precision": "fp32"})

ladder = Ladder(problem, FOLDER, (plain, vector, twice), (library,), ceiling="copy_gb_s")
faulty = Ladder(problem, FOLDER, tuple(_one(k, "faults.cu") for k in ("last_missing", "one_wrong", "swallows_nan")))
