"""Every ladder has its rungs checked once, in the test module of its chapter."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

from climb import ladder_names, load_ladder


def _loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"checked_{path.parent.name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MODULES = {path.parent.name: _loaded(path) for path in sorted(Path(__file__).parent.glob("*/test_rungs.py"))}


def test_every_ladder_is_checked_in_exactly_one_module() -> None:
    assert sorted(name for module in MODULES.values() for name in module.SIZES) == sorted(ladder_names())


def test_ladders_are_checked_in_the_module_of_their_chapter() -> None:
    for chapter, module in MODULES.items():
        assert {load_ladder(name).folder.parent.name for name in module.SIZES} == {chapter}


def test_planted_faults_belong_to_the_ladders_of_their_module() -> None:
    for chapter, module in MODULES.items():
        faults = (getattr(fault, "values", [fault])[0] for fault in module.PLANTED)  # some are marked
        assert {name for name, *_ in faults} <= set(module.SIZES), chapter
