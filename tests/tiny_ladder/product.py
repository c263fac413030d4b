"""C = repeat A B with a rung that is never compiled: for the checks before a launch."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from climb.bench.ladder import Ladder
from climb.bench.problem import Argument, Launch, Problem, Rung

problem = Problem(
    name="product",
    title="C = repeat A B",
    size_keys=("m", "n", "k", "repeat"),
    arguments=(
        Argument("a", "float32", ("m", "k")),
        Argument("b", "float32", ("k", "n")),
        Argument("c", "float32", ("m", "n"), "output"),
    ),
    make_inputs=lambda size, rng: {
        "a": rng.standard_normal((size["m"], size["k"]), dtype=np.float32),
        "b": rng.standard_normal((size["k"], size["n"]), dtype=np.float32),
    },
    reference=lambda inputs, size: {"c": size["repeat"] * inputs["a"].astype(np.float64) @ inputs["b"]},
    tolerance=lambda size: 1e-5,
    flops=lambda size: 2 * size["m"] * size["n"] * size["k"],
    bytes=lambda size: 4 * (size["m"] * size["k"] + size["k"] * size["n"] + size["m"] * size["n"]),
    headline=({"m": 8, "n": 8, "k": 8, "repeat": 1},),
    check=({"m": 3, "n": 5, "k": 7, "repeat": 2},),
    parameters=("repeat",),
)

#: The sizes at which a launch was asked for; the checks come before it.
asked: list[dict[str, int]] = []


def _launches(size):
    asked.append(dict(size))
    return (Launch("never", (1,), (1,), ("a", "b", "c")),)


ladder = Ladder(
    problem,
    Path(__file__).parent,
    (
        Rung("wide", "aligned", _launches, alignment={"a": 16}, source="absent.cu"),
        Rung(
            "small",
            "few rows",
            _launches,
            requires=lambda s: None if s["m"] <= 4 else f"m = {s['m']} exceeds 4",
            source="absent.cu",
        ),
    ),
)
