"""No ladder is left out of the checks of its rungs, and none is checked twice."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

from climb import ladder_names


def _loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"checked_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_ladder_is_in_one_module() -> None:
    modules = [_loaded(path) for path in sorted(Path(__file__).parent.glob("test_*_rungs.py"))]
    assert sorted(name for module in modules for name in module.SIZES) == sorted(ladder_names())
    for module in modules:
        assert {name for name, *_ in module.PLANTED} <= set(module.SIZES), module.__name__
