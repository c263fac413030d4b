"""The installed package works by itself: from any folder, with NumPy and NVIDIA's compiler packages alone."""

from __future__ import annotations

import importlib.metadata as metadata
import os
import re
import subprocess
import sys
import tomllib
import venv
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

SAXPY = """
extern "C" __global__ void saxpy(int n, float a, const float* x, float* y)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}
"""


def requirement(line: str) -> str:
    """A requirement without its spaces, as both kinds of file write it."""
    return re.sub(r"\s+", "", line.partition("  #")[0])


def chosen(name: str) -> set[str]:
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    return {requirement(line) for line in lines if line and not line.startswith("#")}


def test_dependencies_of_the_package_are_those_of_the_lock() -> None:
    extras = {name: {requirement(one) for one in listed} for name, listed in PROJECT["optional-dependencies"].items()}
    base = {requirement(one) for one in PROJECT["dependencies"]}
    assert base | extras["book"] | extras["test"] == chosen("requirements.in")
    assert chosen("requirements-gpu.in") <= extras["gpu"]
    assert extras["notebook"] <= extras["book"]
    names = {name: {re.split(r"[=<>;\[]", one)[0] for one in listed} for name, listed in extras.items()}
    assert names["torch"] <= names["book"] | names["gpu"]
    assert set(extras) == {"book", "gpu", "notebook", "test", "torch"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = ["-m", "pip", "--disable-pip-version-check", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([sys.executable, *command, "--wheel-dir", str(folder), str(ROOT)], check=True)
    (built,) = folder.glob("*.whl")
    return built


def needed(name: str, extras: frozenset[str] = frozenset()) -> Iterator[metadata.Distribution]:
    """An installed distribution and all that it needs here, optional parts left out."""
    from packaging.requirements import Requirement

    found = metadata.distribution(name)
    yield found
    for line in found.requires or ():
        one = Requirement(line)
        if one.marker is None or any(one.marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield from needed(one.name, frozenset(one.extras))


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment that holds the wheel, NumPy and NVIDIA's compiler packages, and nothing else."""
    from packaging.requirements import Requirement

    home = tmp_path_factory.mktemp("an environment")  # with a space in its path
    venv.create(home, with_pip=False, symlinks=True)
    (site,) = home.glob("lib/python*/site-packages")
    install = ["-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps", "--no-compile"]
    python = ["--python", str(home / "bin" / "python")]
    subprocess.run([sys.executable, "-m", "pip", *python, *install[2:], str(wheel)], check=True)
    for line in PROJECT["dependencies"]:
        for found in needed(Requirement(line).name):
            for file in found.files or ():
                top = Path(str(file)).parts[0]
                target = site / top
                if top not in ("..", "__pycache__") and not target.exists():
                    target.symlink_to(Path(str(found.locate_file(top))))
    return home


def run(environment: Path, folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "WORKLOG"))}
    clean["XDG_CACHE_HOME"] = str(folder / "cache")
    program = [str(environment / "bin" / command[0]), *command[1:]]
    return subprocess.run(program, cwd=folder, env=clean, capture_output=True, text=True, check=False)


@pytest.mark.thorough
def test_environment_lacks_what_the_base_package_does_not_need(environment: Path, tmp_path: Path) -> None:
    for module in ("cupy", "matplotlib", "msgspec", "IPython", "pytest"):
        assert run(environment, tmp_path, "python", "-c", f"import {module}").returncode != 0, module


@pytest.mark.thorough
def test_import_works_from_any_folder(environment: Path, tmp_path: Path) -> None:
    code = "import climb; print(climb.__file__, climb.cp.arange(3).sum(), climb.load_ladder('transpose').names[0])"
    done = run(environment, tmp_path, "python", "-c", code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[-2:] == ["3", "naive"] and str(ROOT / "climb") not in done.stdout


@pytest.mark.thorough
def test_emulate_runs_a_file_and_prints_its_counters(environment: Path, tmp_path: Path) -> None:
    (tmp_path / "saxpy.cu").write_text(SAXPY, encoding="utf-8")
    np.save(tmp_path / "x.npy", np.ones(64, np.float32))
    launch = (
        "--grid",
        "1",
        "--block",
        "64",
        "--arg",
        "64",
        "--arg",
        "2.0",
        "--arg",
        "x:float32:64:x.npy",
        "--arg",
        "y:float32:64",
    )
    done = run(environment, tmp_path, "climb", "emulate", "saxpy.cu", *launch)
    assert done.returncode == 0, done.stderr
    assert "y[i] += a * x[i]" in done.stdout
    faulty = SAXPY.replace("if (i < n) ", "")
    (tmp_path / "saxpy.cu").write_text(faulty, encoding="utf-8")
    done = run(environment, tmp_path, "climb", "emulate", "saxpy.cu", *launch[:1], "2", *launch[2:])
    assert done.returncode != 0 and "out of bounds" in done.stdout + done.stderr


@pytest.mark.thorough
def test_readme_example_runs_outside_the_repository(environment: Path, tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    kernel, test = (re.search(rf"^```{name}\n(.*?)^```$", readme, re.M | re.S)[1] for name in ("cuda", "python"))
    (tmp_path / "softmax.cu").write_text(kernel, encoding="utf-8")
    (tmp_path / "test_softmax.py").write_text(test, encoding="utf-8")
    command = ("python", "-c", "from test_softmax import test_softmax; test_softmax()")
    done = run(environment, tmp_path, *command)
    assert "OutOfBounds" in done.stderr and "softmax.cu:7" in done.stderr
    (tmp_path / "softmax.cu").write_text(kernel.replace("row > rows", "row >= rows"), encoding="utf-8")
    done = run(environment, tmp_path, *command)
    assert "AssertionError: global load sectors per request: 28.5714, expected at most 4" in done.stderr
    arrays = ("--arg", "x:float32:200x64:random", "--arg", "y:float32:200x64")
    launch = ("--grid", "4", "--block", "64", *arrays, "--arg", "200", "--arg", "64")
    done = run(environment, tmp_path, "climb", "emulate", "softmax.cu", *launch, "--html", "softmax.html")
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "softmax.html").read_text(encoding="utf-8")  # without Pygments, so without colours
    assert '<details id="L7"' in page and "prefers-color-scheme" in page


@pytest.mark.thorough
def test_check_judges_a_solution(environment: Path, tmp_path: Path) -> None:
    folder = ROOT / "kernels" / "coalescing" / "exercises"
    for name, status in (("fields_solution.cu", 0), ("fields.cu", 1)):
        (tmp_path / name).write_text((folder / name).read_text(encoding="utf-8"), encoding="utf-8")
        done = run(environment, tmp_path, "climb", "check", name, "--exercise", "coalescing/fields")
        assert done.returncode == status, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
