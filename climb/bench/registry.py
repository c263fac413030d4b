"""Ladders, found by folder: every ``kernels/<name>/__init__.py`` that assigns ``ladder``."""

from __future__ import annotations

import ast
import importlib
from functools import cache
from pathlib import Path

from .ladder import Ladder

KERNELS = Path(__file__).resolve().parents[1]
_ROOMS = frozenset({"lab", "emulator", "toolchain", "records"})


class UnknownLadder(LookupError):
    """No ladder of that name; the message lists the known ones."""


def ladder_names() -> tuple[str, ...]:
    """The names of all ladders of the book, in alphabetical order, without importing them."""
    inits = KERNELS.glob("*/__init__.py")
    return tuple(sorted(p.parent.name for p in inits if p.parent.name not in _ROOMS and _assigns_ladder(p)))


def load_ladder(name: str) -> Ladder:
    """The ladder of that name; a dotted name is the module of a ladder that lives elsewhere.

    Raises :class:`UnknownLadder`, and ValueError when a folder and its problem are named differently.
    """
    if "." in name:
        return importlib.import_module(name).ladder
    known = ladder_names()
    if name not in known:
        raise UnknownLadder(f"no ladder '{name}'; the ladders are {', '.join(known) or 'none yet'}")
    ladder = importlib.import_module(f"kernels.{name}").ladder
    if ladder.name != name:
        raise ValueError(f"kernels/{name} holds the ladder '{ladder.name}'; folder and problem must have one name")
    return ladder


@cache
def _assigns_ladder(init: Path) -> bool:
    """Whether the module's top level assigns the name ``ladder``."""
    targets: list[ast.expr] = []
    for node in ast.parse(init.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign):
            targets += node.targets
        elif isinstance(node, ast.AnnAssign):
            targets.append(node.target)
        elif isinstance(node, ast.ImportFrom):
            targets += [ast.Name(alias.asname or alias.name) for alias in node.names]
    return any(isinstance(t, ast.Name) and t.id == "ladder" for t in targets)
