"""A copy of the repository, in which one worker plants mutants and runs their tests."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from climb.validation.mutation.mutants import Mutant
from climb.validation.mutation.processes import Processes

#: Seconds of computing for the tests of a rung, or for the tests listed for a module; a longer run counts as a hang.
LIMIT = 120.0
#: Python's bytecode is copied and stays valid, but not files that another process is writing.
_LEFT_BEHIND = (".git", ".venv", "_build", "*.pyc.*", ".hypothesis", ".pytest_cache", ".ruff_cache")
_OPTIONS = ("-x", "-q", "-rfE", "--tb=line", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:nbval")
#: Times are replayed. Kernels run on the emulator, also beside a GPU, which would not notice a read out of bounds.
#: Tests are as thorough as those of CI (`tests/conftest.py` reads the third). Bytecode is kept in the copy, even where
#: the environment says otherwise: without it, half of a short run is compiling Python.
_ENVIRONMENT = {
    "WORKLOG_TIMINGS": "record",
    "WORKLOG_BACKEND": "emulator",
    "CLIMB_THOROUGH": "1",
    "PYTHONDONTWRITEBYTECODE": "",
}


class Copy:
    """A copy of the repository at ``root`` with its history, in which one worker plants mutants and takes them out."""

    def __init__(self, root: Path, folder: Path, processes: Processes | None = None) -> None:
        self.folder = folder
        self._processes = processes or Processes()
        shutil.copytree(root, folder, ignore=shutil.ignore_patterns(*_LEFT_BEHIND), symlinks=True)
        _share_history(root, folder)
        compiled = root / "_build" / "compiled"
        if compiled.is_dir():
            shutil.copytree(compiled, folder / "_build" / "compiled", copy_function=_link)
        self._clean: dict[str, bool] = {}
        self._original: dict[tuple[str, ...], dict[str, str]] = {}

    @contextlib.contextmanager
    def planted(self, mutant: Mutant) -> Iterator[None]:
        """Put the mutant into the copy within a `with` block."""
        self._write(mutant.file, mutant.mutated)
        try:
            yield
        finally:
            self._write(mutant.file, mutant.text)

    def _write(self, file: str, text: str) -> None:
        """Write a file, and drop its compiled form, which Python tells from a new one only by second and size."""
        path = self.folder / file
        path.write_text(text, encoding="utf-8")
        for compiled in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
            compiled.unlink()

    def pytest(self, arguments: Iterable[str], seconds: float, **environment: str) -> tuple[int | None, str]:
        """Return exit status and output of a run of pytest; no status if it ran out of time and was ended.

        It may compute for ``seconds``, and take longer by the clock.
        """
        command = [sys.executable, "-m", "pytest", *_OPTIONS, *arguments]
        return self._processes.run(command, self.folder, {**_ENVIRONMENT, **environment}, seconds)

    def digests(self, rungs: Iterable[str], *options: str) -> dict[str, str]:
        """Return the digests of the rungs' code as they are now, as ``compiled`` prints them; empty if one does not
        compile."""
        command = [sys.executable, "-m", "climb.validation.mutation.compiled", *options, *rungs]
        status, output = self._processes.run(command, self.folder, {}, errors=subprocess.DEVNULL)
        return json.loads(output) if status == 0 else {}

    def same_code(self, mutant: Mutant, rungs: Sequence[str]) -> str:
        """Return what is the same with the mutant as without it when rungs are compiled: "PTX", "machine code", or
        ""."""
        different = self._different(mutant, rungs)
        if not different:
            return "" if different is None else "PTX"
        # One place first: if the mutant is another program, its code usually differs everywhere.
        for places in (different[:1], different[1:]):
            if places and self._different(mutant, places, "--machine-code") != []:
                return ""
        return "machine code"

    def _different(self, mutant: Mutant, places: Sequence[str], *options: str) -> list[str] | None:
        """Return the places where the code differs with the mutant; None if it does not compile."""
        with self.planted(mutant):
            mutated = self.digests(places, *options)
        if not mutated:
            return None
        if (asked := (*options, *places)) not in self._original:
            self._original[asked] = self.digests(places, *options)
        original = self._original[asked]
        return [place for place in original if mutated.get(place) != original[place]] if original else None

    def passes(self, test: str) -> bool:
        """Return whether a test passes here without a mutant, or a file of tests is collected."""
        if test not in self._clean:
            self._clean[test] = self._passes(test)
        return self._clean[test]

    def passes_with(self, mutant: Mutant, test: str) -> bool:
        """Return whether a test by itself passes with a mutant, or a file of tests is collected."""
        with self.planted(mutant):
            return self._passes(test)

    def _passes(self, test: str) -> bool:
        return self.pytest([test] if "::" in test else ["--collect-only", test], LIMIT)[0] == 0

    def finishes(self, arguments: tuple[str, ...], seconds: float) -> bool:
        """Return whether a run of pytest without a mutant ends in time."""
        return self.pytest(arguments, seconds)[0] is not None


def _share_history(root: Path, folder: Path) -> None:
    """Let Git find the history of the repository at ``root`` in its copy; do nothing if there is none.

    The copy gets the files that Git gives a linked worktree: a commit, a separate index, and the place of the shared
    files. So tests may read the history, and no test writes to the index of the original.
    """
    asked = ("--path-format=absolute", "HEAD", "--git-common-dir", "--git-path", "index")
    made = subprocess.run(["git", "-C", str(root), "rev-parse", *asked], capture_output=True, text=True, check=False)
    if made.returncode or not (root / ".git").exists():  # it may be a folder of another repository
        return
    commit, shared, index = made.stdout.splitlines()
    own = folder / ".git"
    own.mkdir()
    (own / "HEAD").write_text(f"{commit}\n", encoding="utf-8")
    (own / "commondir").write_text(f"{shared}\n", encoding="utf-8")
    shutil.copy2(index, own / "index")


def _link(source: str, target: str) -> str:
    """Link a file, or copy it where the file system has no links between the two."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
    return target
