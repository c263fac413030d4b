"""A stepper, and what the script of a page reads of it: for tests that import the fixture."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import pytest

import climb
from climb import load_ladder, pick, trace
from climb.display.cell_output import CellOutput

ROOT = Path(__file__).resolve().parents[2]
STATIC = ROOT / "book" / "_static"
TILE = {"rows": 64, "cols": 64}


def column(rung: str):
    """The request by which a warp of a transpose reads a column of its tile."""
    return pick(trace(load_ladder("transpose")[rung], TILE, warp=3), "shared load")


def data_of(output: CellOutput) -> dict:
    """The data that the script of a page reads."""
    found = re.search(r"data-stepper='([^']*)'", output.html)
    assert found is not None
    return json.loads(html.unescape(found[1]))


@pytest.fixture(name="wavefronts", scope="module")
def of_two_transposes() -> CellOutput:
    """Wavefronts of a tile with and without padding; a title is to be escaped."""
    return climb.wavefronts_stepper(column("tiled"), column("padded"), titles=("<tiled>", "padded's"))
