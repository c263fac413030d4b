"""The chapter ``book/profiling.ipynb``: what its text says of its kernels and of their profiles."""

from __future__ import annotations

import pytest

from climb import check
from climb.bench.sections import limiter
from climb.display.profile_table import launch_counts
from kernels.profiling.exercises import in_flight

#: The launches whose limiter the chapter names.
LAUNCHES = [
    ("conv1d_channels", "channels", {"i": 1024, "o": 1024, "l": 4, "k": 5, "channels": 16}, "latency"),
    ("stencil1d", "untiled", {"n": 1 << 26, "radius": 1}, "L2"),
    ("matmul", "tiled", {"m": 2048, "n": 2048, "k": 2048}, "L1 and shared memory"),
    ("conv2d", "prefetched", {"rows": 8192, "cols": 8192, "k": 11, "k_cols": 11, "border": "zero"}, "issue slots"),
]


@pytest.mark.parametrize(("ladder", "rung", "size", "says"), LAUNCHES, ids=lambda value: str(value)[:16])
def test_recorded_launch_has_the_limiter_that_the_chapter_names(ladder, rung, size, says):
    assert limiter(launch_counts((ladder, rung, size))) == says


def test_in_flight_is_right_but_waits_for_each_load() -> None:
    verdict = check(in_flight.skeleton, in_flight)
    assert [c.wrong for c in verdict.checks if c.wrong] == ["1 in flight before the first value is needed"]


def test_in_flight_accepts_values_held_in_registers() -> None:
    loop = "        target[i] = 0.5f * source[i];\n"
    held = (
        "        float v[4];\n"
        "        for (int e = 0; e < 4; ++e) v[e] = i + e * stride < n ? source[i + e * stride] : 0.0f;\n"
        "        for (int e = 0; e < 4; ++e)\n"
        "            if (i + e * stride < n) target[i + e * stride] = 0.5f * v[e];\n"
    )
    mine = in_flight.skeleton.replace(loop, held).replace("i += stride", "i += 4 * stride")
    mine = mine.replace("unroll 4", "unroll 1")
    assert check(mine, in_flight).passed
