"""`make live`, with a script in nbconvert's place: what measuring says is shown, and kept out of the chapters."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
#: Executes a "chapter": says two lines of progress where it was told to, and writes the result.
NBCONVERT = """#!/bin/sh
for word; do
    case $before in --output-dir) folder=$word;; esac
    before=$word
done
if test -n "$CLIMB_PROGRESS"; then
    echo "first of $WORKLOG_TIMINGS" >>"$CLIMB_PROGRESS"
    sleep 1.5
    echo second >>"$CLIMB_PROGRESS"
fi
grep -q broken "$word" && { echo "nbclient.exceptions: it broke" >&2; exit 1; }
cp "$word" "$folder/"
sleep 0.3
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with the Makefile, two chapters and an environment that has the script alone."""
    root = tmp_path / "a path"
    for folder in ("book", ".venv/bin"):
        (root / folder).mkdir(parents=True)
    shutil.copy(ROOT / "Makefile", root)
    (root / "requirements.txt").write_text("")
    for name in ("good", "broken"):
        (root / "book" / f"{name}.ipynb").write_text(name)
    python = root / ".venv" / "bin" / "python"
    python.write_text(NBCONVERT)
    python.chmod(0o755)
    (root / ".venv" / "ok").touch()
    return root


def _make(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {name: each for name, each in os.environ.items() if not name.startswith(("CLIMB_", "MAKE"))}
    return subprocess.run(["make", *words], cwd=root, env=environment, capture_output=True, text=True, timeout=60)


def test_progress_of_a_live_chapter_is_shown(project: Path) -> None:
    done = _make(project, "live", "NOTEBOOK=good")
    assert done.returncode == 0, done.stderr
    first, *progress, last = done.stdout.splitlines()
    assert first.strip() == "[1/1] good" and progress == ["first of live", "second"]
    assert last.startswith("good: ") and last.endswith(" s")
    assert (project / "_build" / "live" / "good.ipynb").read_text() == "good"
    assert _make(project, "live", "NOTEBOOK=good").stdout.count("second") == 1, "an earlier run's lines are gone"


def test_a_chapter_that_fails_is_named_and_the_command_ends(project: Path) -> None:
    done = _make(project, "live", "NOTEBOOK=broken")
    assert done.returncode == 2 and "it broke" in done.stderr and "book/broken.ipynb failed" in done.stderr
    assert not (project / "_build" / "live" / "broken.ipynb").exists()
    assert list((project / "_build").glob("run.*")) == []


def test_replayed_chapters_have_no_progress_to_show(project: Path) -> None:
    done = _make(project, "run", "NOTEBOOK=good")
    (line,) = done.stdout.splitlines()
    assert done.returncode == 0 and line.startswith("[1/1] good ") and line.endswith(" s")
