"""Importing the toolchain is quick: what only some calls need is imported by those calls."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_import_loads_no_slow_module() -> None:
    code = "import climb.toolchain, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "climb.toolchain.compilation" in loaded
    slow = {"numpy", "cuda.bindings", "cuda.pathfinder", "importlib.metadata", "email", "subprocess", "tempfile"}
    assert not slow & loaded
