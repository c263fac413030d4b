"""Nothing imports upwards, no two modules import each other (tool.importlinter in pyproject.toml); one style holds."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tools.thorough import first_of_each

ROOT = Path(__file__).resolve().parents[1]
MOST_LINES = 400


def lint(root: Path) -> subprocess.CompletedProcess[str]:
    """Run import-linter on a copy of the repository's packages, with the repository's contracts."""
    program = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    return subprocess.run(
        [sys.executable, "-c", program, "--no-cache"], cwd=root, capture_output=True, text=True, check=False
    )


def test_layers_hold_and_no_modules_import_each_other() -> None:
    done = lint(ROOT)
    assert done.returncode == 0 and "4 kept, 0 broken" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("file", "line", "broken"),
    first_of_each(
        [
            ("climb/toolchain/errors.py", "import climb.emulator", "Nothing imports upwards BROKEN"),
            (
                "climb/emulator/errors.py",
                "def late():\n    from climb.bench.cuda import cp",
                "Nothing imports upwards BROKEN",
            ),
            ("climb/bench/units.py", "from climb.display import style", "Nothing imports upwards BROKEN"),
            ("climb/bench/units.py", "import kernels.tiling.matmul", "The tools know no ladder BROKEN"),
            ("kernels/light_speed/copy/__init__.py", "from climb.display import style", "Ladders and exercises"),
            (
                "climb/toolchain/errors.py",
                "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from climb.toolchain import sass",
                "import each other BROKEN",
            ),
            ("climb/a_new_package.py", "", "Nothing imports upwards BROKEN"),
        ],
        lambda each: each[2],
        unpack=True,
    ),
)
def test_a_planted_import_breaks_a_contract(tmp_path: Path, file: str, line: str, broken: str) -> None:
    for folder in ("climb", "kernels"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__", "*.cu*"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    path = tmp_path / file
    path.write_text((path.read_text(encoding="utf-8") if path.exists() else "") + f"\n{line}\n", encoding="utf-8")
    done = lint(tmp_path)
    assert done.returncode != 0 and broken in done.stdout, done.stdout + done.stderr


def test_the_emulator_imports_numpy_and_the_standard_library_alone() -> None:
    """Asked of the process, since a linter sees no import that is made by name."""
    program = (
        "import sys; before = set(sys.modules); import climb.emulator, climb.emulator.running; "
        "new = {name.split('.')[0] for name in set(sys.modules) - before}; "
        "print(sorted(new - sys.stdlib_module_names - {'climb', 'numpy'}))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("folder", ["climb", "kernels", "tests"])
def test_no_module_is_longer_than_one_purpose_takes(folder: str) -> None:
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in (ROOT / folder).rglob("*.py")}
    assert len(lengths) > 30
    assert {str(path.relative_to(ROOT)): n for path, n in lengths.items() if n > MOST_LINES} == {}


def test_ruff_is_clean() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--no-cache", "--output-format=concise", "."],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
