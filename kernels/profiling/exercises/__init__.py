"""The exercises of the chapter ``book/profiling.ipynb``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from climb.bench.exercise import Check, Claim, Exercise, Finding, Verdict
from climb.bench.problem import Argument, Launch, Problem
from climb.bench.sections import UNITS, limiter
from climb.toolchain import Compiled, disassemble
from climb.toolchain.first_use import first_uses


def loads_in_flight(kernel: str, least: int) -> Claim:
    """Claim that the machine code issues ``least`` loads before it needs the first value."""

    def test(compiled: Compiled) -> Finding:
        most = max((pair.in_flight for pair in first_uses(disassemble(compiled, kernel))), default=0)
        return Finding(most >= least, f"{most} in flight before the first value is needed")

    return Claim("global loads in the machine code", f"at least {least}", test)


_PIXELS = {"rows": 8192, "cols": 8192, "border": "zero"}
#: Profiled launches of four chapters: ladder, rung and size.
LAUNCHES = (
    ("conv1d_channels", "channels", {"i": 1024, "o": 1024, "l": 4, "k": 5, "channels": 16}),
    ("conv1d_channels", "channels", {"i": 1024, "o": 1024, "l": 4, "k": 5, "channels": 2}),
    ("stencil1d", "untiled", {"n": 1 << 26, "radius": 1}),
    ("stencil1d", "naive", {"n": 1 << 26, "radius": 1}),
    ("matmul", "tiled", {"m": 2048, "n": 2048, "k": 2048}),
    ("matmul", "vectorised", {"m": 2048, "n": 2048, "k": 2048}),
    ("conv2d", "naive", {**_PIXELS, "k": 11, "k_cols": 11}),
    ("conv2d", "prefetched", {**_PIXELS, "k": 11, "k_cols": 11}),
    ("conv2d", "vectorised", {**_PIXELS, "k": 11, "k_cols": 11}),
)


def compare_limiters(mine: Callable[[Mapping[str, float]], str]) -> Verdict:
    """Compare a reader's function, which names the limiter from each unit's busy cycles in percent, with ours."""
    from climb.bench.profiling import hardware_counters  # needs the extra [book], which listing exercises does not

    checks = []
    for name, rung, size in LAUNCHES:
        counts = hardware_counters(name).at(rung, size)
        busy = {words: float(counts[unit]) for unit, words in UNITS.items()}
        said, right = mine(busy), limiter(counts)
        told = ", ".join(f"{unit} {share:.0f}" for unit, share in busy.items())
        wrong = None if said == right else f"{told}; you say {said}"
        checks.append(Check(f"{rung} of {name}", wrong, found=f"{told}; {right}"))
    return Verdict("limiter", tuple(checks))


in_flight = Exercise(
    name="in_flight",
    problem=Problem(
        name="in_flight",
        title="Half of each of n floats",
        size_keys=("n",),
        arguments=(Argument("source", "float32", ("n",)), Argument("target", "float32", ("n",), "output")),
        make_inputs=lambda size, rng: {"source": rng.random(size["n"], dtype=np.float32)},
        reference=lambda inputs, size: {"target": np.float32(0.5) * inputs["source"]},
        tolerance=lambda size: 0.0,  # halving a float is exact
        flops=lambda size: size["n"],
        bytes=lambda size: 8 * size["n"],
        headline=(),
        check=(),
    ),
    launches=lambda size: (Launch("in_flight", (2,), (128,), ("source", "target", np.int32(size["n"]))),),
    sizes=({"n": 1}, {"n": 515}, {"n": 4096}),
    folder=Path(__file__).parent,
    builds=(loads_in_flight("in_flight", 4),),
    hints=(
        "In the machine code, the loads and stores take turns. What would go wrong if the compiler moved the second "
        "load before the first store? Think of the addresses that a caller may pass.",
        "Only you know that the two arrays do not overlap. Tell the compiler, or load four values into registers "
        "before you store the first.",
    ),
)
