"""README.md is true: its commands, its map and its picture. (tests/bench/test_report.py checks its table.)"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from climb.bench.versions import COMPILER, MEASURED_WITH, locked

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def commands(text: str) -> set[str]:
    """The targets of make that a text names."""
    return set(re.findall(r"(?:^    |`)make (?:[A-Z]+=\S+ )?([a-z]+)", text, re.MULTILINE))


def test_make_commands_of_the_readme_exist() -> None:
    targets = set(re.findall(r"^([a-z]+):", MAKEFILE, re.MULTILINE))
    assert {"serve", "test", "book", "gpu", "live", "run", "record", "report", "address", "help"} <= commands(README)
    assert commands(README) <= targets


def test_make_help_lists_every_target() -> None:
    help_ = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    phony = re.search(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)
    assert phony
    assert set(re.findall(r"^make ([a-z-]+)", help_, re.MULTILINE)) == set(phony[1].split()) - {"help"}


def places(text: str) -> list[str]:
    """The first column of the map of the repository: files and folders, up to a part such as ``<chapter>``."""
    return re.findall(r"^\| `([^`<]+)[^`]*` \|", text, re.MULTILINE)


def missing(folders: set[str], text: str) -> list[str]:
    """The folders, such as ``climb/bench/``, for which the map has no row."""
    return sorted(folder for folder in folders if not any(place.startswith(folder) for place in places(text)))


def test_every_place_on_the_map_exists() -> None:
    assert len(places(README)) >= 8
    assert [place for place in places(README) if not (ROOT / place).exists()] == []


def test_map_names_every_top_level_folder() -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    folders = {f"{path.split('/')[0]}/" for path in tracked.splitlines() if "/" in path and not path.startswith(".")}
    assert {"book/", "climb/", "kernels/", "records/", "tests/"} <= folders
    assert missing(folders, README) == []


def test_map_names_every_package_of_climb() -> None:
    packages = {f"climb/{path.parent.name}/" for path in (ROOT / "climb").glob("*/__init__.py")}
    assert {"climb/toolchain/", "climb/emulator/", "climb/bench/", "climb/display/", "climb/validation/"} <= packages
    assert missing(packages, README) == []


def test_folder_without_a_row_is_found() -> None:
    rows = ("| `kernels/<chapter>/` | rungs |", "| `climb/bench/` | ladders, in `climb/display/` |", "| `Makefile` | |")
    text = "\n".join(rows)
    assert places(text) == ["kernels/", "climb/bench/", "Makefile"]
    assert missing({"kernels/", "climb/", "climb/bench/", "climb/display/"}, text) == ["climb/display/"]


def test_pictures_of_the_readme_equal_those_drawn_from_the_records(tmp_path: Path) -> None:
    from climb.display.figures import draw_readme_pictures

    for drawn in draw_readme_pictures(tmp_path):
        committed = ROOT / "book" / "_static" / drawn.name
        assert committed.exists() and committed.read_bytes() == drawn.read_bytes(), (
            f"book/_static/{drawn.name} differs from the records; run: make report"
        )


def test_ci_runs_the_commands_of_the_readme_with_the_thorough_tests() -> None:
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert [line for line in ci if line.startswith("make")] == ["make test-all", "make book"]
    assert "set -euo pipefail" in ci
    plain, whole = (_dry_run(target, "ARGS=-k transpose") for target in ("test", "test-all"))
    assert "-k transpose" in plain and whole == plain.replace("-k transpose", "-k transpose --thorough --in-turns")


def _dry_run(*words: str) -> str:
    """The command that make would run last, after those that make the environment."""
    out = subprocess.run(["make", "-n", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return out.partition("WORKLOG_TIMINGS=record")[2]


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-gpu.txt"])
def test_lock_contains_every_chosen_package_with_hashes(name: str) -> None:
    """The lock names no address of the machine that made it."""
    lock = (ROOT / name).read_text(encoding="utf-8")
    chosen = re.findall(r"^([A-Za-z][\w.-]*)", (ROOT / name.replace(".txt", ".in")).read_text(encoding="utf-8"), re.M)
    locked = set(re.findall(r"^([a-z][\w.-]*)==", lock, re.MULTILINE))
    assert [package for package in chosen if package.lower() not in locked] == []
    assert lock.count("==") <= lock.count(" \\\n    --hash=sha256:")
    assert not re.search(r"index-url|find-links|file://", lock)


def test_gpu_lock_has_one_cuda_for_all_vendor_libraries() -> None:
    """cuBLAS, cuFFT and NVRTC of one CUDA, and the cuDNN and Triton that PyTorch was built for."""
    pins = locked(ROOT)
    assert pins["torch"] == "2.11.0" and pins["cuda-toolkit"].startswith("13.0")
    assert pins["nvidia-cudnn-cu13"].startswith("9.19") and pins["nvidia-cuda-nvrtc"].startswith("13.0")
    assert set(MEASURED_WITH) <= set(pins) and COMPILER in pins


def test_gpu_lock_agrees_with_the_base_lock() -> None:
    def pins(name: str) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for package, version in re.findall(r"^([a-z][\w.-]*)==(\S+)", (ROOT / name).read_text(encoding="utf-8"), re.M):
            found.setdefault(package, set()).add(version)
        return found

    base, gpu = pins("requirements.txt"), pins("requirements-gpu.txt")
    assert {p: (v, base[p]) for p, v in gpu.items() if p in base and not v <= base[p]} == {}
    # PyTorch brings an NVRTC of CUDA 13 for itself. Bindings and CuPy load the book's, which is of their CUDA version.
    assert [package for package in {**base, **gpu} if "nvrtc" in package and "12" in package] == [COMPILER]
    assert {int(version.split(".")[0]) for version in base["cuda-bindings"] | base[COMPILER]} == {12}
