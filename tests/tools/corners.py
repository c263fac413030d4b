"""Corners: sizes, constants and inputs that reach branches which the sizes of a problem leave out.

A launch picks its grid by constants of the GPU of the records (132 SMs, two resident blocks each), so at test sizes
no block goes through its loop twice. A corner sets such constants small for one test, in the ladder's Python and, where
the kernel has the constant too, in a copy of its source.

A chapter's ``test_rungs.py`` lists its corners in ``CORNERS`` and in ``HIDDEN`` the planted faults that only corners
reach, in the form of ``PLANTED``. It takes the two tests from here with ``from tools.corners import *``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from climb import BoundRung, Ladder, load_ladder, verify
from climb.bench.identity import expand_includes
from tools.code import whole_source

Inputs = dict[str, np.ndarray]


@dataclass(frozen=True)
class Corner:
    """One size of a ladder with what is set for it.

    ``why`` names the branch that is reached, for the test's name. ``constants`` are values by dotted name, such as
    ``kernels.light_speed.copy.GRID_STRIDE_BLOCKS``; rungs whose launches they leave as they are, and that have nothing
    replaced, are left out. ``source`` replaces text in the rungs' sources with all includes. Rungs whose sources lack
    those texts, or the text ``only``, are left out. ``inputs`` makes the inputs from the size instead of the problem's
    ``make_inputs``.
    """

    ladder: str
    why: str
    size: Mapping[str, Any]
    constants: Mapping[str, Any] = field(default_factory=dict)
    source: Mapping[str, str] = field(default_factory=dict)
    only: str = ""
    inputs: Callable[[Mapping[str, Any]], Inputs] | None = None

    def applies(self, rung: BoundRung) -> bool:
        """Return whether the corner reaches anything in the rung that its plain sizes do not."""
        if rung.ladder.name != self.ladder or rung.rung.requires(self.size) is not None:
            return False
        whole = whole_source(rung.path)
        if not all(text in whole for text in (*self.source, self.only)):
            return False
        if not self.constants or self.source:
            return True
        plain = rung.launches(self.size)
        with pytest.MonkeyPatch.context() as context:
            self._set(context)
            return rung.launches(self.size) != plain

    def _set(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name, value in self.constants.items():
            monkeypatch.setattr(name, value)

    def bind(self, rung: BoundRung, monkeypatch: pytest.MonkeyPatch, folder: Path) -> BoundRung:
        """Set the constants, and return the rung with its source, copied to ``folder``, changed as the corner says."""
        self._set(monkeypatch)
        if not self.source:
            return rung
        text = expand_includes(rung.path)
        for old, new in self.source.items():
            assert text.count(old) == 1, f"{rung.path.name} has {old!r} {text.count(old)} times"
            text = text.replace(old, new)
        return rewritten(rung, text, folder)


def rewritten(rung: BoundRung, text: str, folder: Path) -> BoundRung:
    """The rung with another text, which includes nothing, as its source in ``folder``."""
    folder.mkdir(exist_ok=True)
    (folder / rung.path.name).write_text(text, encoding="utf-8")
    rungs = tuple(replace(one, source=rung.path.name) if one is rung.rung else one for one in rung.ladder.rungs)
    ladder: Ladder = replace(rung.ladder, folder=folder, rungs=rungs)
    return ladder[rung.name]


def with_fault(rung: BoundRung, old: str, new: str, folder: Path) -> BoundRung:
    """The rung with one text replaced, in its own file or in what it shares with others, as a source in ``folder``."""
    return rewritten(rung, faulty_text(rung, old, new), folder)


def faulty_text(rung: BoundRung, old: str, new: str) -> str:
    """The rung's source with its includes, and one text replaced, which its own file or all of it has but once."""
    whole = expand_includes(rung.path)
    once = rung.source.count(old) == 1 or whole.count(old) == 1
    assert once, f"{rung.path.name} has {old!r} {whole.count(old)} times"
    before, _, after = whole.rpartition(old)  # a rung includes first: the last is its own, if it has one
    return before + new + after


def _verify(corner: Corner, rung: BoundRung, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    bound = corner.bind(rung, monkeypatch, folder)
    verify(bound, corner.size, inputs=corner.inputs(corner.size) if corner.inputs else None)


def test_results_are_right_at_corners_that_small_constants_reach(
    cornered: tuple[Corner, BoundRung], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _verify(*cornered, monkeypatch, tmp_path)


@pytest.mark.emulated
def test_planted_fault_that_only_a_corner_reaches_is_found(
    tmp_path: Path, hidden: tuple[str, str, str, str, type], module: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, rung_name, old, new, error = hidden
    faulty = with_fault(load_ladder(name)[rung_name], old, new, tmp_path / "faulty")
    with pytest.raises(error):
        for number, corner in enumerate(module.CORNERS):
            if corner.applies(faulty):
                with monkeypatch.context() as context:
                    _verify(corner, faulty, context, tmp_path / str(number))
