"""Merge counts and profiles of Nsight Compute, and reports of compute-sanitizer, that were made elsewhere."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from climb.bench import hardware, records
from climb.bench.records import RecordError
from climb.bench.records.kinds import OccupancyRecord
from climb.bench.registry import ladder_names
from climb.validation.agreement import record_path
from climb.validation.agreement.code import NONDETERMINISTIC
from climb.validation.agreement.measuring import RUNS, dump, rung_steps
from climb.validation.faults import TOOLS, clean_path
from climb.validation.faults.clean import code_of, codes_by_ladder, rows_with_tools
from climb.validation.schema import AgreementRecord, CleanRecord, DivergenceRecord

#: The profiles of single chapters, by their files.
PROFILES: dict[str, Any] = {"occupancy.json": OccupancyRecord, "divergence.json": DivergenceRecord}


def merge_counts(source: Path, target: Path) -> Iterator[str]:
    """Merge the counts of rungs from a folder of records; return a line for each ladder found there.

    A rung's counts are merged if all of its launches were counted often enough, and match today's code. Nothing is
    written if nothing is merged. Raises RecordError if another compiler made the code of the counts in ``target``.
    """
    path = record_path(folder=source)
    if not path.exists():
        return
    new, at = records.load(path, AgreementRecord), record_path(folder=target)
    old = records.load(at, AgreementRecord) if at.exists() else None
    if old is not None and (old.nvrtc != new.nvrtc or old.metrics != new.metrics):
        raise RecordError(f"{path}: its counts are of NVRTC {new.nvrtc}, those of {at} of {old.nvrtc}")
    rungs = list(old.rungs) if old else []
    for ladder in dict.fromkeys(point["ladder"] for point in new.rungs):
        if ladder not in ladder_names():
            yield f"counts of {ladder}: left out: no ladder of the book has that name"
            continue
        ours = [point for point in new.rungs if point["ladder"] == ladder]
        for rung in dict.fromkeys(point["rung"] for point in ours):
            _take_code(path, at, (ladder, rung))
        wanted: dict[str, list[tuple[int, str]]] = {}
        for step in rung_steps(ladder):
            wanted.setdefault(step.names["rung"], []).append((step.names["launch"], step.code))
        good = {rung for rung, launches in wanted.items() if launches == _whole(ours, rung)}
        rungs = [one for one in rungs if one["ladder"] != ladder or one["rung"] not in good]
        rungs += [one for one in ours if one["rung"] in good]
        left = [rung for rung in dict.fromkeys(one["rung"] for one in ours) if rung not in good]
        yield f"counts of {ladder}: {len(good)} of {len(wanted)} rungs" + (
            f"; left out, incomplete or of other code: {', '.join(left)}" if left else ""
        )
    order = {name: place for place, name in enumerate(ladder_names())}
    rungs = sorted(rungs, key=lambda one: order.get(one["ladder"], -1))
    data = {**msgspec.to_builtins(new), "rungs": rungs, "patterns": list(old.patterns) if old else list(new.patterns)}
    records.save(at, data, AgreementRecord, dump(data))


def _whole(points: list[Any], rung: str) -> list[tuple[int, str]]:
    """Return launches and codes of a rung, of those that were counted in all runs."""
    return [
        (one["launch"], one["code_sha256"])
        for one in points
        if one["rung"] == rung and len(one["counts"]) >= RUNS["rungs"]
    ]


def _take_code(path: Path, at: Path, name: tuple[str, str]) -> None:
    """Copy the kept code of a nondeterministic rung: counts of one compilation say nothing about another."""
    file = Path("code", f"{name[0]}.{name[1]}.json")
    if name in NONDETERMINISTIC and path.with_name(str(file.parent)).joinpath(file.name).exists():
        at.with_name("code").mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path.with_name("code") / file.name, at.with_name("code") / file.name)


def merge_clean(source: Path, target: Path) -> Iterator[str]:
    """Merge the rows of ladders that every tool has run to the end; return a line for each ladder found there.

    A row is merged if its code is the code whose counts ``target`` has, or, without counts there, the code of the
    counts of ``records.DEFAULT_GPU``. Reports of the tools are merged too, and mentioned. Raises RecordError.
    """
    path, at = clean_path(folder=source), clean_path(folder=target)
    if not path.exists():
        return
    new = records.load(path, CleanRecord)
    old = records.load(at, CleanRecord) if at.exists() else None
    counts = record_path(folder=target)
    codes = codes_by_ladder(records.load(counts if counts.exists() else record_path(), AgreementRecord).rungs)
    rows = {row["ladder"]: row for row in (rows_with_tools(old) if old else ())}
    for row in rows_with_tools(new):
        name = row["ladder"]
        lacks = [f"{tool} did not finish" for tool in TOOLS if tool not in row["tools"]]
        if code_of(codes.get(name, ())) != row["code_sha256"]:
            lacks.append("it is of other code than the counts")
        if not lacks:
            rows[name] = row
        found = [f"{tool}: {said['says']}" for tool, said in row["tools"].items() if said["errors"]]
        yield f"sanitizer on {name}: " + (f"left out: {'; '.join(lacks)}" if lacks else "; ".join(found) or "clean")
    data = {**new, "ladders": [rows[name] for name in sorted(rows)]}
    records.save(at, json.loads(json.dumps(data)), CleanRecord)


def merge_profiles(source: Path, target: Path) -> Iterator[str]:
    """Merge the profiles of the chapters ``occupancy`` and ``divergence``; return a line for each that is there.

    Raises RecordError for a file that is not such a profile.
    """
    for name, schema in PROFILES.items():
        path = source / "profiles" / name
        if not path.exists():
            continue
        data = msgspec.to_builtins(records.load(path, schema))
        gpu = data["device"]["name"]
        why = "" if hardware.gpu_slug(gpu) == target.name else f"; left out: it is of {gpu}"
        if not why:
            records.write_whole(target / "profiles" / name, path.read_text(encoding="utf-8"))
        yield f"profiles/{name}: of {data['date']}{why}"
