"""The exercises and exhibits of the chapter ``book/a-network.ipynb``.

``variance`` is a kernel to mend, ``judge`` looks at two functions that are worked out on paper, ``exhibit(name)`` is
the source of a kernel that is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from climb.bench.exercise import Check, Exercise, Verdict, at_most, exhibit_reader
from climb.bench.problem import Argument, Launch, Problem, Size

exhibit = exhibit_reader(__file__)

GROUP = 256


def _inputs(size: Size, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Values of a deviation of about one; the mean of the last groups is 1000."""
    source = rng.standard_normal((size["groups"], GROUP), dtype=np.float32)
    source[size["groups"] // 2 :] += 1000
    return {"source": source}


variance = Exercise(
    name="variance",
    problem=Problem(
        name="variance",
        title="The variance of each group of 256 floats",
        size_keys=("groups",),
        arguments=(
            Argument("source", "float32", ("groups", lambda size: GROUP)),
            Argument("result", "float32", ("groups",), "output"),
        ),
        make_inputs=_inputs,
        reference=lambda inputs, size: {"result": inputs["source"].astype(np.float64).var(axis=1)},
        # The mean of 256 values around 1000 is off by a few of its last bits, 6e-5, and that squared is nothing; what
        # is left are the rounding errors of the differences, 3e-5 each, which average out.
        tolerance=lambda size: 1e-5,
        flops=lambda size: 4 * GROUP * size["groups"],
        bytes=lambda size: 4 * (GROUP + 1) * size["groups"],
        headline=(),
        check=(),
    ),
    launches=lambda size: (Launch("variance", (size["groups"],), (32,), ("source", "result")),),
    sizes=({"groups": 1}, {"groups": 6}),
    folder=Path(__file__).parent,
    claims=(at_most("global load", 4),),
    hints=(
        "Print the result for a group whose mean is 1000: how many of its digits are left when 1000001 - 1000000 is "
        "computed in float32?",
        "A lane has only eight values. Keep them, find the mean first, and sum the squares of the differences from it.",
    ),
)

#: Steps of a chain: bytes of weights, bytes a second, seconds of waiting, bytes that fit into the ring.
CASES = ((8e6, 4e12, 1e-6, 2e6), (8e6, 4e12, 1e-6, 16e6), (8e6, 4e12, 5e-6, 16e6), (1e6, 4e12, 1e-6, 0.0))


def judge(
    resting: Callable[[float, float, float], float], streaming: Callable[[float, float, float, float], float]
) -> Verdict:
    """The verdict on the seconds of a step if memory rests while it waits, and if it fills a ring meanwhile."""
    checks = []
    for nbytes, rate, wait, ring in CASES:
        early = min(nbytes, ring, wait * rate)
        for name, found, right in (
            (f"resting({nbytes:g}, {rate:g}, {wait:g})", resting(nbytes, rate, wait), wait + nbytes / rate),
            (
                f"streaming({nbytes:g}, {rate:g}, {wait:g}, {ring:g})",
                streaming(nbytes, rate, wait, ring),
                wait + (nbytes - early) / rate,
            ),
        ):
            wrong = None if abs(found - right) < 1e-9 * max(right, 1e-6) else f"{found:g} s is not right"
            checks.append(Check(name, wrong))
    return Verdict("ring", tuple(checks))
