"""Divergence: how many steps each of n points takes to escape. A lane's work is known only when it is done."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from climb.bench.ladder import Ladder
from climb.bench.problem import Argument, Launch, Problem, Rung, Size, ceil_div
from climb.bench.work import Work

FLOAT = 4
MAX_STEPS = 256
#: Points per thread in the rungs blocked to reconverged, and the period of the periodic data; the kernels' kPoints.
POINTS = 8
THREADS = 256
REFILLED_POINTS = 16
#: Blocks of the rungs compacted and cycle_check: as many as an H200 runs at once, the kernels' kBlocks on each SM.
RESIDENT = 132 * 6
#: Steps between the two values of z that cycle_check compares, and how many a point has taken by then: the kernel's
#: kBatch, and kFew and the batches of the first stage. (The end of its last stage saves no step.)
CYCLE, CYCLE_AT = 12, 80
#: The number of steps within which the light points of the periodic data escape.
LIGHT_STEPS = 8
#: Multiplications and additions of one step, including the test.
FLOPS_PER_STEP = 8
#: The part of the plane that the points cover: a square whose lower left corner is here.
CORNER, SIDE = (-2.0, -1.375), 2.75
_CHUNK, _DROP_EVERY = 1 << 14, 8

#: How the points are arranged: at random, row by row as in a picture, or by their number of steps. The periodic data
#: are other points: every eighth takes all steps, and the others escape at once.
DATA = ("shuffled", "image", "sorted", "periodic")


def escape_counts(re: np.ndarray, im: np.ndarray) -> np.ndarray:
    """Steps of z <- z^2 + c, from zero, before which z was within distance 2; at most MAX_STEPS. In float32 throughout.

    ``re`` and ``im`` are float32 of shape (n,); returns int32 (n,). Works on chunks that fit a CPU's cache, and drops
    the points that have escaped every few steps.
    """
    counts = np.zeros(re.shape, np.int32)
    four = np.float32(4)
    for start in range(0, re.size, _CHUNK):
        here = np.arange(start, min(start + _CHUNK, re.size))
        c_re, c_im = re[here], im[here]
        z_re, z_im = np.zeros_like(c_re), np.zeros_like(c_im)
        inside, count = np.ones(here.size, bool), np.zeros(here.size, np.int32)
        with np.errstate(all="ignore"):
            for done in range(1, MAX_STEPS + 1):
                re2, im2, product = z_re * z_re, z_im * z_im, z_re * z_im
                inside &= re2 + im2 <= four
                count += inside
                z_re, z_im = (re2 - im2) + c_re, (product + product) + c_im
                if done % _DROP_EVERY == 0:
                    counts[here] = count
                    here, c_re, c_im, z_re, z_im, count = (a[inside] for a in (here, c_re, c_im, z_re, z_im, count))
                    inside = np.ones(here.size, bool)
                    if not here.size:
                        break
    return counts


def image(n: int) -> tuple[np.ndarray, np.ndarray]:
    """The first n points of a square picture, row by row: float32 re and im of shape (n,)."""
    return _plane(np.arange(n), max(1, int(np.ceil(np.sqrt(n)))))


def _plane(at: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """The points with these indices in a picture of ``width`` x ``width``: float32 re and im."""
    re = CORNER[0] + SIDE * (at % width + 0.5) / width
    im = CORNER[1] + SIDE * (at // width + 0.5) / width
    return re.astype(np.float32), im.astype(np.float32)


@functools.lru_cache(maxsize=1)
def _image_counts(n: int) -> np.ndarray:
    return escape_counts(*image(n))


def _inputs(size: Size, rng: np.random.Generator) -> dict[str, np.ndarray]:
    n = size["n"]
    re, im = image(n)
    match size["data"]:
        case "image":
            return {"re": re, "im": im}
        case "shuffled":
            chosen = rng.permutation(n)
        case "sorted":
            chosen = np.argsort(_image_counts(n), kind="stable")
        case "periodic":
            chosen = _periodic(_image_counts(n), rng)
    return {"re": re[chosen], "im": im[chosen]}


def _periodic(counts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Indices of points: every POINTS-th takes the most steps, and the others take few."""
    heavy = np.flatnonzero(counts == counts.max(initial=0))
    light = np.flatnonzero(counts <= LIGHT_STEPS)
    light = light if light.size else heavy
    at = np.arange(counts.size)
    drawn = (rng.choice(points, counts.size) if points.size else at for points in (heavy, light))
    return np.where(at % POINTS == 0, *drawn)


@functools.cache
def sampled_counts(data: str, every: int = 64) -> np.ndarray:
    """Steps of a 64th of the headline's points in the same arrangement: int32 (2^18,). For predictions on paper.

    Takes whole rows of the picture, so that neighbouring points stay neighbours.
    """
    width = 1 << 12
    if data == "periodic":
        given = _inputs({"n": width * width // every, "data": data}, np.random.default_rng(0))
        return escape_counts(given["re"], given["im"])
    rows = np.arange(0, width, every)
    counts = escape_counts(*_plane((rows[:, None] * width + np.arange(width)).reshape(-1), width))
    if data == "shuffled":
        return np.random.default_rng(0).permutation(counts)
    return np.sort(counts) if data == "sorted" else counts


@functools.cache
def _mean_steps(data: str) -> float:
    """Steps per point of a picture of 512 x 512; a finer picture differs by less than 1 %."""
    size = {"n": 1 << 18, "data": data}
    given = _inputs(size, np.random.default_rng(0))
    return float(escape_counts(given["re"], given["im"]).mean())


def _flops(size: Size) -> int:
    data = "periodic" if size["data"] == "periodic" else "image"  # the other three hold the same points
    return round(FLOPS_PER_STEP * _mean_steps(data) * size["n"])


problem = Problem(
    name="divergence",
    title="Steps to escape, for n points",
    size_keys=("n", "data"),
    arguments=(
        Argument("re", "float32", ("n",)),
        Argument("im", "float32", ("n",)),
        Argument("counts", "int32", ("n",), role="output"),
    ),
    make_inputs=_inputs,
    reference=lambda inputs, size: {"counts": escape_counts(inputs["re"], inputs["im"])},
    tolerance=lambda size: 0.0,  # whole numbers, and each operation rounds the same way
    flops=_flops,
    # Doubling a product is exact, so it can be part of a multiply-add; the other six round by themselves.
    operations=lambda size: {"fp32": 6 * _flops(size) // FLOPS_PER_STEP, "fma": _flops(size) // FLOPS_PER_STEP},
    bytes=lambda size: 3 * FLOAT * size["n"],
    headline=({"n": 1 << 24, "data": "shuffled"},),
    sweep=tuple({"n": 1 << 24, "data": data} for data in DATA[1:]),
    check=(
        {"n": 1, "data": "image"},
        {"n": 3, "data": "sorted"},
        {"n": 127, "data": "periodic"},
        {"n": 1000, "data": "shuffled"},
        {"n": 4099, "data": "image"},
    ),
    kinds={"data": DATA},
    accepts_empty=True,
)


def _launches(kernel: str, threads: int, points: int) -> Callable[[Size], tuple[Launch, ...]]:
    def launches(size: Size) -> tuple[Launch, ...]:
        grid = (max(1, ceil_div(size["n"], threads * points)),)
        return (Launch(kernel, grid, (threads,), ("re", "im", "counts", np.uint64(size["n"]))),)

    return launches


def _resident(kernel: str) -> Callable[[Size], tuple[Launch, ...]]:
    """The launch with as many blocks as run at once; each takes points until none are left."""

    def launches(size: Size) -> tuple[Launch, ...]:
        grid = (min(max(1, ceil_div(size["n"], THREADS)), RESIDENT),)
        return (Launch(kernel, grid, (THREADS,), ("re", "im", "counts", np.uint32(size["n"]))),)

    return launches


@functools.cache
def _share_in_cycles(data: str) -> float:
    """The share of points that cycle_check finds in a cycle, of a picture of 128 x 128."""
    given = _inputs({"n": 1 << 14, "data": data}, np.random.default_rng(0))
    inside = escape_counts(given["re"], given["im"]) == MAX_STEPS
    c_re, c_im = given["re"][inside], given["im"][inside]
    z_re, z_im = np.zeros_like(c_re), np.zeros_like(c_im)
    for done in range(CYCLE_AT):
        if done == CYCLE_AT - CYCLE:
            before = z_re, z_im
        z_re, z_im = (z_re * z_re - z_im * z_im) + c_re, 2 * (z_re * z_im) + c_im
    return float(((z_re == before[0]) & (z_im == before[1])).sum() / inside.size)


def _fits_32_bits(size: Size) -> str | None:
    return None if size["n"] < 1 << 32 else "n may be at most 2^32 - 1, because indices have 32 bits"


def _untested(size: Size) -> Work:
    """The work where most steps have no test: six operations instead of seven, of which one is a multiply-add."""
    steps = _flops(size) // FLOPS_PER_STEP
    return replace(problem.work(size), fp32=5 * steps, fma=steps)


def _without_cycles(size: Size) -> Work:
    """The same without the steps of points in a cycle, from where the rung cycle_check finds it."""
    data = "periodic" if size["data"] == "periodic" else "image"
    saved = round((MAX_STEPS - CYCLE_AT) * _share_in_cycles(data) * size["n"])
    work = _untested(size)
    return replace(work, fp32=max(0, work.fp32 - 5 * saved), fma=max(0, work.fma - saved))


ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        Rung("fixed", "all steps for every point", _launches("escape_fixed", THREADS, 1)),
        Rung("early_exit", "leave the loop when the point escapes", _launches("escape_early_exit", THREADS, 1)),
        Rung("blocked", "eight consecutive points per thread", _launches("escape_blocked", THREADS, POINTS)),
        Rung("strided", "eight points per thread, a block apart", _launches("escape_strided", THREADS, POINTS)),
        Rung("flattened", "one loop instead of two", _launches("escape_flattened", THREADS, POINTS)),
        Rung("reconverged", "lanes reconverge every 16 steps", _launches("escape_reconverged", THREADS, POINTS)),
        Rung("refilled", "the warp hands out its points", _launches("escape_refilled", THREADS, REFILLED_POINTS)),
        Rung(
            "replayed", "one test per batch, then back", _launches("escape_replayed", THREADS, REFILLED_POINTS),
            shortcut=True, work=_untested,
        ),
        Rung(
            "compacted", "warps full of points that last", _resident("escape_compacted"),
            requires=_fits_32_bits, shortcut=True, work=_untested,
        ),
        Rung(
            "cycle_check", "a point that comes back goes round", _resident("escape_cycle_check"),
            requires=_fits_32_bits, shortcut=True, work=_without_cycles,
        ),
    ),
)  # fmt: skip
