"""Find ladders and exercises by folder.

Every ``kernels/<chapter>/<name>/__init__.py`` that assigns ``ladder`` is a ladder; the exercises of a chapter are in
``kernels/<chapter>/exercises/__init__.py``.
"""

from __future__ import annotations

import ast
import importlib
from functools import cache
from pathlib import Path

from climb import paths
from climb.bench.exercise import Exercise, exercises_in
from climb.bench.ladder import Ladder
from climb.extras import how_to_install

KERNELS = paths.KERNELS


class UnknownLadder(LookupError):
    """No ladder has that name; the message lists those that exist."""


def ladder_names() -> tuple[str, ...]:
    """Return the names of all ladders of the book, in alphabetical order, without importing them."""
    return tuple(sorted(_folders()))


def load_ladder(name: str) -> Ladder:
    """The ladder of that name; a dotted name is the module of a ladder outside the book.

    Raises :class:`UnknownLadder`, ValueError when a folder and its problem are named differently, and
    ModuleNotFoundError, which says what to install, where the ladder needs a package that is not there.
    """
    paths.make_kernels_importable()
    module = ladder_module(name)
    try:
        ladder: Ladder = importlib.import_module(module).ladder
    except ModuleNotFoundError as error:
        if (missing := how_to_install(error)) is None:
            raise
        raise ModuleNotFoundError(f"ladder '{name}': {missing}", name=error.name) from error
    if module != name and ladder.name != name:
        place = module.replace(".", "/")
        raise ValueError(f"{place} holds the ladder '{ladder.name}'; folder and problem must have one name")
    return ladder


def ladder_module(name: str) -> str:
    """Return the module that holds a ladder; a dotted name is one already. Raises :class:`UnknownLadder`."""
    if "." in name:
        return name
    folder = _folder_in(KERNELS, name)
    if folder is None:
        raise UnknownLadder(f"no ladder '{name}'; the ladders are {', '.join(ladder_names()) or 'none yet'}")
    return ".".join(("kernels", *folder.relative_to(KERNELS).parts))


def exercise_chapters() -> tuple[str, ...]:
    """Return the chapters that have exercises, in alphabetical order, without importing them."""
    return tuple(sorted(init.parts[-3] for init in KERNELS.glob("*/exercises/__init__.py")))


def load_exercises(chapter: str) -> list[Exercise]:
    """Return the exercises of a chapter, in their order. Raises ModuleNotFoundError for a chapter without exercises."""
    paths.make_kernels_importable()
    return exercises_in(importlib.import_module(f"kernels.{chapter}.exercises"))


def _folders() -> dict[str, Path]:
    """Map each ladder's name to its folder, as found at the first call. Raises ValueError for a name in two
    chapters."""
    return _folders_in(KERNELS)


@cache
def _folders_in(kernels: Path) -> dict[str, Path]:
    return {name: folder for name in _modules_in(kernels) if (folder := _folder_in(kernels, name)) is not None}


@cache
def _folder_in(kernels: Path, name: str) -> Path | None:
    """Return the folder of one ladder. Modules of other names are not read: many processes load only one ladder."""
    found = [
        init.parent for init in _modules_in(kernels).get(name, ()) if name != "exercises" and _assigns_ladder(init)
    ]
    if len(found) > 1:
        raise ValueError(f"two ladders are called {name}: {found[0]} and {found[1]}")
    return found[0] if found else None


@cache
def _modules_in(kernels: Path) -> dict[str, list[Path]]:
    """Map each folder of a chapter to its ``__init__.py``."""
    modules: dict[str, list[Path]] = {}
    for init in sorted(kernels.glob("*/*/__init__.py")):
        modules.setdefault(init.parent.name, []).append(init)
    return modules


@cache
def _assigns_ladder(init: Path) -> bool:
    """Return whether the module's top level assigns the name ``ladder``."""
    targets: list[ast.expr] = []
    for node in ast.parse(init.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign):
            targets += node.targets
        elif isinstance(node, ast.AnnAssign):
            targets.append(node.target)
        elif isinstance(node, ast.ImportFrom):
            targets += [ast.Name(alias.asname or alias.name) for alias in node.names]
    return any(isinstance(t, ast.Name) and t.id == "ladder" for t in targets)
