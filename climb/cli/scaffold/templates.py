"""The texts of the stubs. Words in capitals (``NAME``, ``CHAPTER``, ``PAGE``) are replaced by ``fill``."""

from __future__ import annotations

import re
from collections.abc import Callable


def fill(template: str, **words: str) -> str:
    """Return the template with ``NAME`` and the like replaced: ``fill(text, name="tail")``."""
    return re.sub(r"(?<![A-Z])(" + "|".join(map(str.upper, words)) + r")(?![A-Z])", _word(words), template)


def _word(words: dict[str, str]) -> Callable[[re.Match[str]], str]:
    return lambda match: words[match[0].lower()]


EXERCISES = '''"""The exercises and exhibits of the chapter ``book/PAGE.ipynb``."""

from __future__ import annotations

from climb.bench.exercise import exhibit_reader

exhibit = exhibit_reader(__file__)
'''

EXERCISE = """

# A stub, complete and small: replace the problem, the kernels and the claim by your own.
NAME = Exercise(
    name="NAME",
    problem=Problem(
        name="NAME",
        title="Twice each of n floats",
        size_keys=("n",),
        arguments=(Argument("source", "float32", ("n",)), Argument("target", "float32", ("n",), "output")),
        make_inputs=lambda size, rng: {"source": rng.random(size["n"], dtype=np.float32)},
        reference=lambda inputs, size: {"target": 2 * inputs["source"]},
        tolerance=lambda size: 0.0,  # doubling a float is exact
        flops=lambda size: size["n"],
        bytes=lambda size: 8 * size["n"],
        headline=(),
        check=(),
    ),
    # Blocks of 128 threads, four floats a thread.
    launches=lambda size: (
        Launch("NAME", (ceil_div(size["n"], 512),), (128,), ("source", "target", np.int32(size["n"]))),
    ),
    sizes=({"n": 1}, {"n": 515}, {"n": 4096}),
    folder=Path(__file__).parent,
    claims=(at_most("global load", 4),),
    hints=(
        "To be written: say in words where to look, without the code.",
        "To be written: say in words what to change, without the code.",
    ),
)
"""

SKELETON = """// A stub: doubles every float. Each thread takes four neighbouring floats, so the
// lanes of a warp load addresses 16 bytes apart. Let neighbouring lanes load
// neighbours.
constexpr int kEach = 4;

__global__ void NAME(
    const float* __restrict__ source, float* __restrict__ target, int n)
{
    const int first = (blockIdx.x * blockDim.x + threadIdx.x) * kEach;
    for (int e = 0; e < kEach; ++e) {
        if (first + e < n) {
            target[first + e] = 2.0f * source[first + e];
        }
    }
}
"""

SOLUTION = """// A stub: the four floats of a thread lie blockDim.x apart.
constexpr int kEach = 4;

__global__ void NAME(
    const float* __restrict__ source, float* __restrict__ target, int n)
{
    const int first = blockIdx.x * blockDim.x * kEach + threadIdx.x;
    for (int e = 0; e < kEach; ++e) {
        const int i = first + e * blockDim.x;
        if (i < n) {
            target[i] = 2.0f * source[i];
        }
    }
}
"""

EXERCISE_TEXT = """````{exercise}
:label: ex-PAGE-NAME
**To be written.** `climb new exercise` made this stub. The kernel doubles every float; a thread takes four neighbours.
Change it so that each load of a warp touches four sectors.
````"""

SOLUTION_TEXT = """````{solution} ex-PAGE-NAME
:class: dropdown
To be written: why the solution works.

```{literalinclude} ../kernels/CHAPTER/exercises/NAME_solution.cu
:language: cuda
```
````"""

#: The sections of a chapter: the cell's id and its text.
CHAPTER_SECTIONS = (
    ("title", "# TITLE\n\n`climb new chapter` made this stub. To be written: the sentence that the chapter proves."),
    ("predict", "## Predict\n\nTo be written: a question that the reader can answer on paper."),
    ("first-rung", "## The first rung\n\nTo be written: the kernel, run, checked, and its accesses drawn."),
    ("timed-text", "To be written: what to expect of its time, before it is measured."),
    ("further-rung", "## A further rung\n\nTo be written: what changes, why it should help, and whether it does."),
    ("when-not", "## When it does not pay\n\nTo be written: a size, a type or a GPU where the idea buys nothing."),
    ("exhibit", "## Exhibit\n\nTo be written: a wrong kernel, and what the emulator says of it."),
    (
        "exercises",
        "## Exercises\n\nEdit the kernel where it stands and run the cell. The checks need no GPU.\n\n"
        "````{exercise}\n:label: ex-PAGE-paper\n**On paper.** To be written.\n````\n\n"
        "````{solution} ex-PAGE-paper\n:class: dropdown\nTo be written.\n````",
    ),
    ("began", "## Where this began\n\nTo be written: what others reported, beside what we measure."),
    (
        "where-this-holds",
        "## Where this holds\n\nTo be written: how each finding is marked, in `book/findings.toml`.",
    ),
    ("remember", "## Three lines to remember\n\n- To be written.\n- To be written.\n- To be written."),
)  # fmt: skip

#: The rest of a chapter's first code cell, after its beginning.
FIRST_CELL = """
from climb import announce, cp

announce()"""

#: The two standalone cells: a whole kernel with its launch, then its time.
WHOLE_KERNEL = '''code = r"""
extern "C" __global__ void twice(const float* x, float* y, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2.0f * x[i];
}
"""
twice = cp.RawKernel(code, "twice")
n = 1000
x = cp.arange(n, dtype=cp.float32)
y = cp.empty_like(x)
grid, block = ((n + 255) // 256,), (256,)
twice(grid, block, (x, y, cp.int32(n)))
print("right:", bool((y == 2 * x).all()))'''
ITS_TIME = """start, stop = cp.cuda.Event(), cp.cuda.Event()
start.record()
twice(grid, block, (x, y, cp.int32(n)))
stop.record()
stop.synchronize()
print(f"twice: {1000 * cp.cuda.get_elapsed_time(start, stop):.1f} µs")"""

#: A finding, which a chapter marks with the range in which it holds.
FINDING = """
[[PAGE]]
finding = "To be written."
holds = "general"
why = "To be written."
"""

CHAPTER_TEST = '''"""The chapter ``book/PAGE.ipynb``: what its text says of its kernels."""

from __future__ import annotations

from climb import check
from kernels.CHAPTER.exercises import NAME


def test_NAME_is_right_but_loads_16_sectors_per_request() -> None:
    verdict = check(NAME.skeleton, NAME)
    assert [c.wrong for c in verdict.checks if c.wrong] == ["16 sectors per request"]
'''

LADDER = '''"""NAME: a stub that doubles n floats, to be replaced by a problem of your own."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from climb.bench.ladder import Ladder
from climb.bench.problem import Argument, Launch, Problem, Rung, Size, ceil_div

FLOAT = 4
THREADS = 256

problem = Problem(
    name="NAME",
    title="Twice each of n floats",
    size_keys=("n",),
    arguments=(Argument("source", "float32", ("n",)), Argument("target", "float32", ("n",), role="output")),
    make_inputs=lambda size, rng: {"source": rng.random(size["n"], dtype=np.float32)},
    reference=lambda inputs, size: {"target": 2 * inputs["source"]},
    tolerance=lambda size: 0.0,  # doubling a float is exact
    flops=lambda size: size["n"],
    bytes=lambda size: 2 * FLOAT * size["n"],
    headline=({"n": 1 << 24},),
    check=({"n": 1}, {"n": 127}, {"n": 1024}, {"n": 4099}),
    accepts_empty=True,
)


def _naive(size: Size) -> tuple[Launch, ...]:
    grid = (max(1, ceil_div(size["n"], THREADS)),)
    return (Launch("NAME_naive", grid, (THREADS,), ("source", "target", np.uint64(size["n"]))),)


ladder = Ladder(problem, Path(__file__).parent, rungs=(Rung("naive", "one thread, one float", _naive),))
'''

NAIVE = """// Idea: one thread doubles one float.
// From the rung before: the first rung.
// Requires: nothing.
__global__ void NAME_naive(
    const float* __restrict__ source, float* __restrict__ target, size_t n)
{
    const size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) {
        target[i] = 2.0f * source[i];
    }
}
"""

SIZES = 'st.fixed_dictionaries({"n": st.one_of(st.integers(0, 40), st.integers(0, 9000))})'
FAULT = '("NAME", "naive", "if (i < n)", "if (i <= n)", OutOfBounds)'

RUNG_TESTS = '''"""Rungs of CHAPTER: correct on awkward sizes and values, tidy, and their planted faults are found."""

from __future__ import annotations

from hypothesis import strategies as st
from tools.rung_checks import *  # noqa: F403

from climb.emulator import OutOfBounds

#: Sizes to draw from: small, with ones, primes and tile edges among them.
SIZES = {
    "NAME": DRAWN,
}

#: Faults planted in rungs: what is replaced by what, and what must come of it.
PLANTED = [
    PLANT,
]  # fmt: skip
'''
