"""The exercises of the chapter on the speed of light, and its exhibit.

``triad`` and ``reversed_copy`` are kernels to complete, ``judge`` checks an answer worked out on paper, and
``SHORT_COPY`` is the source of a kernel whose launch copies only a part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from climb.bench.exercise import Check, Claim, Exercise, Finding, Verdict, at_most
from climb.bench.problem import Argument, Launch, Problem, ceil_div

HERE = Path(__file__).parent
FLOAT = 4
WARP = 32
QUAD = 4
#: Threads of a block of the triad, and of the reversed copy.
TRIAD_THREADS, REVERSED_THREADS = 128, 256
#: Floats that one thread of the reversed copy moves; the kernel's kEach.
EACH = 8
A = np.float32(0.75)

#: The exhibit: one float per thread, but launched as if each thread copied four.
SHORT_COPY = (HERE / "../exhibits/short_copy.cu").read_text(encoding="utf-8")


def _at_most_requests(kind: str, arrays: int, n: int) -> Claim:
    """Claim that accesses to ``arrays`` arrays of n floats take 16 bytes each, except for the last n % 4 floats."""
    quads, tail = divmod(n, QUAD)
    limit = arrays * (ceil_div(quads, WARP) + ceil_div(tail, WARP))

    def test(counters: Any) -> Finding:
        found = sum(a.requests for a in counters.lines if a.kind == kind)
        return Finding(0 < found <= limit, f"{found} requests")

    return Claim(kind, f"at most {limit}", test)


def _triad_launch(size: Mapping[str, int]) -> tuple[Launch, ...]:
    blocks = max(1, ceil_div(ceil_div(size["n"], QUAD), TRIAD_THREADS))
    return (Launch("triad", (blocks,), (TRIAD_THREADS,), ("x", "y", "z", A, np.uint64(size["n"]))),)


_TRIAD_SIZES: tuple[dict[str, int], ...] = ({"n": 1}, {"n": 3}, {"n": 130}, {"n": 4099})

triad = Exercise(
    name="triad",
    problem=Problem(
        name="triad",
        title="z = a x + y",
        size_keys=("n",),
        arguments=(
            Argument("x", "float32", ("n",)),
            Argument("y", "float32", ("n",)),
            Argument("z", "float32", ("n",), role="output"),
        ),
        make_inputs=lambda size, rng: {
            "x": rng.standard_normal(size["n"], dtype=np.float32),
            "y": rng.standard_normal(size["n"], dtype=np.float32),
        },
        reference=lambda inputs, size: {"z": float(A) * inputs["x"].astype(np.float64) + inputs["y"]},
        tolerance=lambda size: 2.0**-23,  # one rounding, or two without FMA
        flops=lambda size: 2 * size["n"],
        bytes=lambda size: 3 * FLOAT * size["n"],
        headline=(),
        check=_TRIAD_SIZES,
    ),
    launches=_triad_launch,
    sizes=_TRIAD_SIZES,
    folder=HERE,
    claims=(
        _at_most_requests("global load", 2, _TRIAD_SIZES[-1]["n"]),
        _at_most_requests("global store", 1, _TRIAD_SIZES[-1]["n"]),
    ),
    hints=(
        "Which type loads four floats with one instruction? How many such groups are there among `n` floats?",
        "Let thread *i* handle the *i*-th group of four from each array. The last `n % 4` floats are left: "
        "let the first threads take one each.",
    ),
)


def _reversed_launch(size: Mapping[str, int]) -> tuple[Launch, ...]:
    blocks = max(1, ceil_div(size["n"], REVERSED_THREADS * EACH))
    return (Launch("reversed", (blocks,), (REVERSED_THREADS,), ("source", "target", np.uint64(size["n"]))),)


# The last size is a multiple of a sector's floats: only then can a reversed warp stay within four sectors.
_REVERSED_SIZES: tuple[dict[str, int], ...] = ({"n": 1}, {"n": 257}, {"n": 5003}, {"n": 8192})

reversed_copy = Exercise(
    name="reversed",
    problem=Problem(
        name="reversed",
        title="Copy n floats, last to first",
        size_keys=("n",),
        arguments=(
            Argument("source", "float32", ("n",)),
            Argument("target", "float32", ("n",), role="output"),
        ),
        make_inputs=lambda size, rng: {"source": rng.random(size["n"], dtype=np.float32)},
        reference=lambda inputs, size: {"target": inputs["source"][::-1]},
        tolerance=lambda size: 0.0,
        flops=lambda size: 0,
        bytes=lambda size: 2 * FLOAT * size["n"],
        headline=(),
        check=_REVERSED_SIZES,
    ),
    launches=_reversed_launch,
    sizes=_REVERSED_SIZES,
    folder=HERE,
    claims=(at_most("global load", 4), at_most("global store", 4)),
    hints=(
        "In one step of the loop, by how many floats do the indices of neighbouring lanes differ?",
        "Keep the block's range, and swap the roles of the two terms: neighbouring threads take neighbouring "
        "floats, and a thread's own floats lie a block of threads apart.",
    ),
)

Answer = Callable[[int, int, int, Mapping[str, float]], tuple[int, int, float]]

#: What answers are checked on: rows and columns of a matrix, and vectors that it multiplies.
_TRIED = ((1024, 512, 1), (4096, 25088, 1), (4096, 4096, 8), (4096, 4096, 512))


def work(rows: int, cols: int, vectors: int, ceilings: Mapping[str, float]) -> tuple[int, int, float]:
    """FLOPs, least bytes and limit in seconds of Y = W X: W of rows x cols, X of cols x vectors, in float32.

    ``ceilings`` are a record's. There are few outputs beside the weights, so the read ceiling applies to the bytes.
    """
    flops = 2 * rows * cols * vectors
    moved = FLOAT * (rows * cols + cols * vectors + rows * vectors)
    return flops, moved, max(moved / (ceilings["read_gb_s"] * 1e9), flops / (ceilings["fma_tflop_s"] * 1e12))


def judge(answer: Answer, ceilings: Mapping[str, float]) -> Verdict:
    """Compare a reader's function with :func:`work`; one line for FLOPs, bytes and the limit."""
    wrong: dict[str, str | None] = {"FLOPs": None, "bytes": None, "the limit": None}
    for shape in _TRIED:
        expected = work(*shape, ceilings)
        at = "{} x {}, {} vector(s)".format(*shape)
        try:
            given = tuple(answer(*shape, ceilings))
            if len(given) != len(expected):
                raise ValueError(f"{len(given)} values instead of FLOPs, bytes and seconds")
            right = [bool(np.isclose(float(g), e, rtol=1e-9, atol=0.0)) for g, e in zip(given, expected, strict=True)]
        except Exception as error:
            return Verdict("limit", (Check("the function", f"at {at}: {type(error).__name__}: {error}"),))
        for name, ok in zip(wrong, right, strict=True):
            if not ok and wrong[name] is None:
                wrong[name] = f"not right at {at}"
    return Verdict("limit", tuple(Check(name, said) for name, said in wrong.items()))
