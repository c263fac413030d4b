"""The functions that each test of a module calls, traced once and kept: a file of tests is traced again only if it has
changed, or a file of ``climb`` that its tests call."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from climb.validation.mutation import running
from climb.validation.mutation.mutants import digest_of_files


def calls(root: Path, kept: Path, tests: Sequence[str], jobs: int = 2) -> dict[str, dict]:
    """Return the functions that each test of the files calls, as ``tracing`` writes it; ``kept`` is the file with
    earlier traces."""
    earlier = _load(kept)
    fresh = {file: earlier[file]["tests"] for file in tests if file in earlier and is_fresh(root, file, earlier[file])}
    missing = [file for file in tests if file not in fresh]
    if missing:
        print(f"Tracing what the tests of {len(missing)} files call.", flush=True)
        traced = running.trace(root, missing, jobs)
        for file in missing:
            fresh[file] = {test: made for test, made in traced.items() if test.split("::", 1)[0] == file}
        entries = {file: {"of": digest(root, file, made), "tests": made} for file, made in fresh.items()}
        kept.parent.mkdir(exist_ok=True)
        kept.write_text(json.dumps(entries), encoding="utf-8")
    return {test: made for file in tests for test, made in fresh[file].items()}


def is_fresh(root: Path, file: str, entry: Mapping) -> bool:
    """Return whether neither the file of tests nor the code that its tests call has changed since it was traced."""
    return entry["of"] == digest(root, file, entry["tests"])


def digest(root: Path, file: str, tests: Mapping[str, Mapping]) -> str:
    """Return the digest of a file of tests and of the files that its tests call."""
    called = {function.split("::", 1)[0] for made in tests.values() for function in made["functions"]}
    return digest_of_files(root, {file, *called})


def _load(path: Path) -> dict[str, dict]:
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
        return {file: entry for file, entry in entries.items() if {"of", "tests"} <= set(entry)}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}
