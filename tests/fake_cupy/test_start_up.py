"""Importing fake_cupy is quick: it loads NumPy and the emulator, but no compiler and no CuPy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_import_loads_no_slow_module() -> None:
    # What an interpreter loads by itself, for the packages of its environment say, is not ours.
    code = "import sys; before = set(sys.modules); import climb.fake_cupy; print(*{*sys.modules} - before)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "climb.fake_cupy.raw_module" in loaded
    slow = {"cupy", "cuda.bindings", "cuda.pathfinder", "importlib.metadata", "subprocess", "tempfile", "matplotlib"}
    assert not slow & loaded
