"""The rungs, ladders and faults for each check of `tools.rung_checks`: in `make test`, and in `make test-all`."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from climb import BoundRung, Ladder, load_ladder
from tools.corners import Corner
from tools.thorough import in_turn, thorough

BOOK = Path(__file__).resolve().parents[2] / "book"


def _rungs(ladders: Iterable[Ladder]) -> Iterator[BoundRung]:
    for ladder in ladders:
        yield from ladder


def _identify(value: object) -> str | None:
    if isinstance(value, BoundRung):
        return f"{value.ladder.name}-{value.name}"
    if isinstance(value, Ladder):
        return value.name
    if not isinstance(value, tuple):
        return None
    if isinstance(value[0], Corner):
        return f"{_identify(value[1])}-{value[0].why}"
    if isinstance(value[0], BoundRung):
        return f"{_identify(value[0])}-{value[1]}"
    return "-".join(value[:2])  # a planted fault: where it is


def _with_an_input(rung: BoundRung) -> Iterator[tuple[BoundRung, str]]:
    """Yield the rung with each float input; integers have no NaN."""
    for argument in rung.ladder.problem.inputs:
        if np.dtype(argument.dtype).kind == "f":
            yield rung, argument.name


#: The pairs of ladder and rung that modules name in ``SLOW``.
_slow: set[tuple[str, str]] = set()


def _is_slow(rung: BoundRung) -> bool:
    return (rung.ladder.name, rung.name) in _slow


def is_last(rung: BoundRung) -> bool:
    return [rung.name] == [one.name for one in rung.ladder if not _is_slow(one)][-1:]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrise by what a test asks for:

    ``rung``: every rung of the module's ladders. ``checked``: the last rung of each ladder, and those that no table of
    checks in the chapter compares with the reference. ``built``: the last rung of each ladder. ``drawn``: the last rung
    of the first ladder; ``poisoned``: that with each of its float inputs. ``zeroed``: the last rung of the last ladder.
    ``shifted``: the last rung of each ladder, and every rung that refuses an input off by one element. ``cornered``:
    the first corner, with the last rung that it applies to. ``ladder``: every ladder. ``planted``: the first fault
    of each kind of error that no module collected before it has; ``hidden``: the same of faults that only corners
    reach. With `--thorough` all are for every rung and every fault; of what repeats a check for hundreds of rungs,
    and of a ladder's other faults, `make test-all` runs a twelfth.
    """
    for name in _VALUES.keys() & set(metafunc.fixturenames):
        metafunc.parametrize(name, _values(name, metafunc.module), ids=_identify)


@functools.cache
def _values(name: str, module: ModuleType) -> list[object]:
    """The values of one parameter for a chapter's module."""
    _slow.update(getattr(module, "SLOW", ()))
    return _VALUES[name](module, [load_ladder(ladder) for ladder in module.SIZES])


def _unless(
    rungs: Iterable[BoundRung], usual: Callable[[BoundRung], bool], other: Callable[[BoundRung], object] = thorough
) -> list[object]:
    """Each rung; those that are not usual for `make test-all` alone, marked by `other`."""
    return [rung if usual(rung) else other(rung) for rung in rungs]


def _repeats(rung: BoundRung, value: object = None) -> object:
    """A parameter of a check that many rungs have had: `make test-all` tries each ladder's last rung, and the others in
    turn."""
    return (thorough if is_last(rung) else in_turn)(rung if value is None else value)


def _corners(module: ModuleType, ladders: list[Ladder]) -> list[object]:
    corners = getattr(module, "CORNERS", ())
    pairs = ((corner, rung) for corner in corners for rung in reversed([*_rungs(ladders)]) if corner.applies(rung))
    return [thorough(pair) if number else pair for number, pair in enumerate(pairs)]


Fault = tuple[str, str, str, str, type]


@functools.cache
def _kinds(where: str) -> set[type]:
    """The kinds of error of the faults in this list that `make test` plants in the modules collected so far."""
    return set()


def _faults(where: str, module: ModuleType) -> list[object]:
    """The faults that a module lists under this name; those of slow rungs, and those that it has marked, last. They ask
    whether the checks notice, which does not change with every commit: after the first of a ladder they take turns."""
    values: list[object] = []
    ladders: set[str] = set()
    faults = getattr(module, where, ())
    plain: list[Fault] = [fault for fault in faults if not hasattr(fault, "marks")]
    for fault in sorted(plain, key=lambda fault: fault[:2] in _slow):
        if fault[:2] not in _slow and fault[4] not in _kinds(where):
            values.append(fault)
            _kinds(where).add(fault[4])
        else:
            values.append(in_turn(fault) if fault[0] in ladders else thorough(fault))
        ladders.add(fault[0])
    return [*values, *(fault for fault in faults if hasattr(fault, "marks"))]


def _shown(module: ModuleType, ladder: Ladder) -> set[str]:
    """The rungs of a ladder that the chapter's tables of checks launch, most at one of the problem's sizes to check.
    Running the chapter verifies each of them, so `make test` need not do it twice. `tests/book/test_rungs_shown.py`
    lists the ladders without such a table."""
    page = BOOK / f"{Path(module.__file__).parent.name.replace('_', '-')}.ipynb"
    found = re.findall(rf'data-ladder=\\"{ladder.name}\\" data-rungs=\\"([^"\\]*)\\"', _text(page))
    return {name for names in found for name in names.split()}


def _checked(module: ModuleType, ladders: list[Ladder]) -> list[object]:
    shown = {ladder.name: _shown(module, ladder) for ladder in ladders}

    def usual(rung: BoundRung) -> bool:
        return is_last(rung) or not (rung.name in shown[rung.ladder.name] or _is_slow(rung))

    return _unless(_rungs(ladders), usual)


@functools.cache
def _text(page: Path) -> str:
    """The page's JSON, in which quotes are escaped; empty for a chapter that is not written yet."""
    return page.read_text(encoding="utf-8") if page.is_file() else ""


#: What makes the values of each parameter, from the chapter's module and its ladders.
_VALUES: dict[str, Callable[[ModuleType, list[Ladder]], list[object]]] = {
    "rung": lambda module, ladders: _unless(_rungs(ladders), lambda rung: not _is_slow(rung)),
    "checked": _checked,
    "built": lambda module, ladders: _unless(_rungs(ladders), is_last),
    "drawn": lambda module, ladders: _unless(
        _rungs(ladders), lambda rung: is_last(rung) and rung.ladder is ladders[0], _repeats
    ),
    "zeroed": lambda module, ladders: _unless(
        _rungs(ladders), lambda rung: is_last(rung) and rung.ladder is ladders[-1], _repeats
    ),
    "shifted": lambda module, ladders: _unless(
        _rungs(ladders), lambda rung: is_last(rung) or bool(needs_more(rung) and not _is_slow(rung)), _repeats
    ),
    "cornered": _corners,
    "poisoned": lambda module, ladders: [
        one if is_last(rung) and rung.ladder is ladders[0] else _repeats(rung, one)
        for rung in _rungs(ladders)
        for one in _with_an_input(rung)
    ],
    "ladder": lambda module, ladders: list(ladders),
    "planted": lambda module, ladders: _faults("PLANTED", module),
    "hidden": lambda module, ladders: _faults("HIDDEN", module),
}


def element_bytes(rung: BoundRung, name: str) -> int:
    return next(np.dtype(a.dtype).itemsize for a in rung.ladder.problem.inputs if a.name == name)


def needs_more(rung: BoundRung) -> list[str]:
    """The inputs that the rung wants at multiples of more than an element."""
    names = [a.name for a in rung.ladder.problem.inputs]
    return [n for n, b in rung.rung.alignment.items() if n in names and b > element_bytes(rung, n)]
