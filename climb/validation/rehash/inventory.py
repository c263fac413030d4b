"""List the objects that the records of a checkout refer to, with their sources.

``python -m climb.validation.rehash.inventory OUT.json``, started in a checkout, writes one JSON object:

- ``points``: each (module, rung, size) that a record names by ``source_sha256``, with today's hash and source;
- ``counts``: each launch and pattern that Nsight Compute has counted, with today's ``code_sha256``;
- ``kept``: the hash of the source of each rung whose counted code is kept;
- ``shown``: the same of each rung whose code is kept for the chapters;
- ``faults``: the hash of each planted fault;
- ``searches``: the hash of each source that a search has tuned.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from climb.bench import identity, records, shown_code
from climb.bench.identity import expand_includes
from climb.bench.ladder import BoundRung, Ladder
from climb.bench.problem import Size
from climb.bench.record_folders import SEVERAL
from climb.bench.registry import ladder_names, load_ladder
from climb.distributed.recorded import shared_record
from climb.distributed.registry import load_shared_ladder, shared_ladder_names
from climb.validation import agreement
from climb.validation.agreement import code, measuring
from climb.validation.faults import measuring as faults


def inventory(renamed: dict[str, dict[str, str]] | None = None) -> dict[str, Any]:
    """List the objects that the records of this checkout refer to.

    ``renamed`` gives, for a ladder, today's name of each rung that the records call by an older one.
    """
    renamed = renamed or {}
    points = [*_points(renamed), *_shared_points()]
    points += [_measured(rung) for rung in agreement.all_rungs()]
    return {
        "points": points,
        "counts": counts(),
        "kept": _made_from(code.NONDETERMINISTIC, agreement.measured_size),
        "shown": _made_from(shown_code.SHOWN, shown_code.shown_size),
        "faults": {fault.name: faults.digest(fault) for fault in faults.ALL},
        "searches": _searches(),
    }


def _made_from(rungs: Iterable[tuple[str, str]], size_of: Callable[[BoundRung], Size]) -> dict[str, Any]:
    """Return for each rung what the code that is kept of it says of its origin, as of today."""
    found = {}
    for ladder, name in rungs:
        rung = load_ladder(ladder)[name]
        compiled = rung.compiled(size_of(rung), whole=False)
        found[f"{ladder}.{name}"] = {
            "made_from": shown_code.made_from(compiled, expand_includes(rung.path)),
            "filename": compiled.filename,
            "lowered": list(compiled.names.values()),
        }
    return found


def named_points(data: Any, renamed: dict[str, dict[str, str]]) -> Iterator[tuple[str, dict[str, Any], str, Size]]:
    """Yield the points of a record that name a source: module of the ladder, the point, today's rung, and the size."""
    if not isinstance(data, dict) or "ladder" not in data:
        return
    command = data.get("command", "").split()
    module = command[-1] if command and "." in command[-1] else data["ladder"]
    for point in data.get("points", ()):
        if point.get("source_sha256"):
            name = renamed.get(data["ladder"], {}).get(point["name"], point["name"])
            yield module, point, name, point.get("size") or data["size"]


def _points(renamed: dict[str, dict[str, str]]) -> Iterator[dict[str, Any]]:
    seen = set()
    for path in sorted(records.RECORDS.rglob("*.json")):
        if SEVERAL.search(path.relative_to(records.RECORDS).parts[0]):
            continue  # see _shared_points
        data = json.loads(path.read_text(encoding="utf-8"))
        for module, _, name, size in named_points(data, renamed):
            key = (module, name, json.dumps(size, sort_keys=True))
            ladder = load_ladder(module)
            if key not in seen and name in ladder.names:
                seen.add(key)
                yield describe(module, ladder, name, size)


def _shared_points() -> Iterator[dict[str, Any]]:
    """Describe the points of the ladders over several GPUs; the number of GPUs counts as part of the size."""
    for folder in sorted(path for path in records.RECORDS.iterdir() if SEVERAL.search(path.name)):
        for name in shared_ladder_names():
            ladder, record = load_shared_ladder(name), shared_record(name, folder=folder)
            for point in record.points if record else ():
                if point.name in ladder.names:
                    measured = ladder.measured(point.name, point.gpus, point.size)
                    yield {
                        "module": name,
                        "ladder": name,
                        "rung": point.name,
                        "size": {**point.size, "gpus": point.gpus},
                        "sha256": identity.sha256(**measured),
                        **measured,
                    }


def _measured(rung: BoundRung) -> dict[str, Any]:
    return describe(rung.ladder.name, rung.ladder, rung.name, agreement.measured_size(rung))


def describe(module: str, ladder: Ladder, name: str, size: Size) -> dict[str, Any]:
    """Describe one point: its hash, and everything that a proof needs."""
    rung = ladder[name]
    return {
        "module": module,
        "ladder": ladder.name,
        "rung": name,
        "size": dict(size),
        "sha256": rung.sha256(size),
        "source": expand_includes(rung.path),
        "options": list(rung.options),
        "launches": [launch.as_json() for launch in rung.launches(size)],
        "workspace": {key: [list(shape), dtype] for key, (shape, dtype) in rung.rung.workspace(size).items()},
    }


def counts() -> list[dict[str, Any]]:
    """Return each launch and each pattern that the emulator is compared on, with the hash of its code."""
    steps = (step for some in measuring.STEPS.values() for step in some())
    return [{"key": step.names, "code_sha256": step.code} for step in steps]


def _searches() -> dict[str, str]:
    """Return the hash of what each search tunes: of ladders with a module ``search`` whose record holds one."""
    found = {}
    for name in ladder_names():
        ladder = load_ladder(name)
        if (ladder.folder / "search.py").exists():
            module = importlib.import_module(f"kernels.{ladder.folder.parent.name}.{name}.search")
            if hasattr(module, "source_sha256"):
                found[name] = module.source_sha256()
    return found


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(inventory()), encoding="utf-8")
