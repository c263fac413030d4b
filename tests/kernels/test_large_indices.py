"""Kernels reach elements past the 2^31st: their indices have 64 bits where the product of two extents does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tools.corners import with_fault
from tools.ends import run_ends
from tools.thorough import first_of_each, thorough

from climb import BoundRung, WrongResult, cp, load_ladder
from climb.bench.checking import compare
from climb.bench.problem import Textured
from climb.emulator import OutOfBounds

#: More than 2^31 elements, with extents that vectors of four divide.
SIDE, LONG = 46352, (1 << 31) + (1 << 16)
#: How many elements at the end of each axis hold values, and how many outputs are compared: less, by any halo.
HELD, COMPARED = 72, 12

SIZES: dict[str, dict[str, Any]] = {
    "copy": {"n": LONG},
    "saxpy": {"n": LONG},
    "transpose": {"rows": SIDE, "cols": SIDE},
    "stencil2d": {"rows": SIDE, "cols": SIDE, "radius": 2},
    "conv2d": {"rows": SIDE, "cols": SIDE, "k": 5, "k_cols": 5, "border": "zero"},
}

#: Faults in indices, in the form of ``PLANTED``.
PLANTED = [
    ("transpose", "naive", "static_cast<size_t>(row + j) * cols", "(row + j) * cols", OutOfBounds),
    ("transpose", "naive", "static_cast<size_t>(col) * rows", "col * rows", OutOfBounds),
    ("copy", "scalar", "const size_t i", "const int i", WrongResult),
]  # fmt: skip

pytestmark = pytest.mark.emulated


@pytest.fixture(autouse=True)
def enough_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make grids as long as the arrays where a rung has a few blocks go through all of them."""
    monkeypatch.setattr("kernels.light_speed.copy.GRID_STRIDE_BLOCKS", LONG // 256)
    monkeypatch.setattr("kernels.conv2d.conv2d.SMS", 1 << 20)
    monkeypatch.setattr("kernels.conv2d.conv2d.STRIP", 16)


def _check_the_end(rung: BoundRung) -> None:
    problem, size = rung.ladder.problem, SIZES[rung.ladder.name]
    reason = rung.rung.requires(size)
    if reason is not None:
        pytest.skip(reason)
    small = {key: HELD if key in ("n", "rows", "cols") else value for key, value in size.items()}
    corner = rung.ladder.inputs(small)
    (expected,) = problem.reference(corner, small).values()
    end = tuple(slice(-COMPARED, None) for _ in expected.shape)
    found = compare(
        cp.asnumpy(run_ends(rung, size, corner)[end]), np.ascontiguousarray(expected[end]), problem.tolerance(size)
    )
    if found.wrong:
        raise WrongResult(f"{rung.name}: {found}")


def _reads_a_texture(rung: BoundRung) -> bool:
    """Return whether the rung copies an input into a texture: that would touch all of it, and textures are smaller."""
    return any(isinstance(arg, Textured) for launch in rung.launches(SIZES[rung.ladder.name]) for arg in launch.args)


RUNGS = [rung for name in SIZES for rung in load_ladder(name) if not _reads_a_texture(rung)]
#: Rungs whose blocks walk down the whole array or strips of it, which takes seconds. `make test` has one: the fastest.
WALKING = ("stencil2d-streamed", "conv2d-streamed")


def _name(rung: BoundRung) -> str:
    return f"{rung.ladder.name}-{rung.name}"


@pytest.mark.parametrize(
    "rung",
    [
        *first_of_each(
            (rung for rung in reversed(RUNGS) if _name(rung) not in WALKING), lambda rung: rung.ladder.folder.parent
        ),
        *(thorough(rung) for rung in RUNGS if _name(rung) in WALKING),
    ],
    ids=_name,
)
def test_elements_past_the_2_to_the_31st_are_right(rung: BoundRung) -> None:
    _check_the_end(rung)


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: "-".join(planted[:2]))
def test_an_index_of_32_bits_is_found(planted: tuple[str, str, str, str, type], tmp_path: Path) -> None:
    name, rung_name, old, new, error = planted
    with pytest.raises(error):
        _check_the_end(with_fault(load_ladder(name)[rung_name], old, new, tmp_path))
