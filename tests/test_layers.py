"""Nothing imports upwards (ARCHITECTURE.md), and the code has one style."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tools import imports

ROOT = Path(__file__).resolve().parents[1]


def test_nothing_imports_upwards() -> None:
    assert imports.violations(ROOT) == []


def test_every_python_file_of_the_kernels_is_looked_at() -> None:
    """The walk must reach the rooms: a wrong root would find no violation either."""
    seen = {imports.room(p.relative_to(ROOT).with_suffix("").as_posix().replace("/", "."))
            for p in (ROOT / "kernels").rglob("*.py")}  # fmt: skip
    assert {"toolchain", "emulator", "lab", "problem:copy"} <= seen


def test_exceptions_are_still_needed() -> None:
    for name in imports.COMPUTED:
        assert "?" in {used.module for used in imports.imports((ROOT / name).read_text(encoding="utf-8"), name)}


@pytest.mark.parametrize(
    ("name", "source", "says"),
    [
        ("climb/toolchain/a.py", "import climb.emulator", "toolchain imports emulator"),
        ("climb/toolchain/a.py", "from kernels import lab", "toolchain imports lab"),
        ("climb/toolchain/a.py", "from .. import emulator", "toolchain imports emulator"),
        ("climb/emulator/isa/a.py", "from ...lab.cuda import cp", "emulator imports lab"),
        ("climb/emulator/a.py", "import scipy.sparse", "emulator imports scipy"),
        ("climb/emulator/a.py", "def late():\n    import cupy", "emulator imports cupy"),
        ("climb/a.py", "from kernels.transpose import ladder", "lab imports problem:transpose"),
        ("climb/a.py", "from ..matmul import ladder", "lab imports problem:matmul"),
        ("climb/__init__.py", "from ..matmul import ladder", "lab imports problem:matmul"),
        ("climb/a.py", "import importlib\nimportlib.import_module('kernels.copy')", "lab imports problem:copy"),
        ("climb/a.py", "import_module('..copy', 'climb')", "lab imports problem:copy"),
        ("climb/a.py", "import importlib\nimportlib.import_module(f'kernels.{1}')", "whose name is computed"),
        ("climb/a.py", "def f(name):\n    import_module(name)", "whose name is computed"),
        ("climb/a.py", "__import__('tests.conftest')", "lab imports tests"),
        ("kernels/light_speed/copy/__init__.py", "from climb.emulator import load", "problem:copy imports emulator"),
        ("kernels/light_speed/copy/__init__.py", "from ..fma import ladder", "problem:copy imports problem:fma"),
        ("kernels/light_speed/copy/__init__.py", "import kernels.fma as f", "problem:copy imports problem:fma"),
        ("kernels/__init__.py", "from . import lab", "kernels imports lab"),
    ],
)  # fmt: skip
def test_an_import_upwards_is_found(tmp_path: Path, name: str, source: str, says: str) -> None:
    _write(tmp_path, name, source)
    found = imports.violations(tmp_path)
    assert len(found) == 1
    assert says in found[0]
    assert found[0].startswith(f"{name}:")


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("climb/toolchain/a.py", "from .b import c\nfrom . import d\nimport cuda.bindings.nvrtc"),
        ("climb/emulator/isa/a.py", "from ..lanes import x\nfrom climb.toolchain import y\nimport numpy as np, re"),
        (
            "climb/a.py",
            "from kernels import emulator, toolchain\nimport importlib\nimportlib.import_module('cupy')",
        ),
        ("kernels/light_speed/copy/__init__.py", "from climb import Ladder\nfrom .sizes import n"),
    ],
)
def test_an_import_downwards_is_not(tmp_path: Path, name: str, source: str) -> None:
    _write(tmp_path, name, source)
    assert imports.violations(tmp_path) == []


def test_ruff_is_clean() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--no-cache", "--output-format=concise", "."],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def _write(root: Path, name: str, source: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True)
    path.write_text(source, encoding="utf-8")
