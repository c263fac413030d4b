"""Importing fake_cupy is quick: it loads NumPy and the emulator, but no compiler and no CuPy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_import_loads_no_slow_module() -> None:
    code = "import climb.fake_cupy, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "climb.fake_cupy.raw_module" in loaded
    slow = {"cupy", "cuda.bindings", "cuda.pathfinder", "importlib.metadata", "subprocess", "tempfile", "matplotlib"}
    assert not slow & loaded
