"""Rewrite the hashes of records whose kernels are proven to be the measured ones."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from climb.bench import records
from climb.validation.faults import clean
from climb.validation.rehash import inventory, proof

ROOT = records.RECORDS.parent
Inventory = dict[str, Any]
Renamed = dict[str, dict[str, str]]


@dataclass
class Outcome:
    """The result of a conversion: how many hashes it proved by tokens and by machine code, and what it left and why."""

    by_tokens: int = 0
    by_machine_code: int = 0
    hashes: dict[str, str] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [
            f"{self.by_tokens} kernels have the same tokens, {self.by_machine_code} more the same machine code.",
            *(f"left as it was: {one}" for one in self.left),
        ]
        return "\n".join(lines)


@contextmanager
def checkout(revision: str) -> Iterator[Path]:
    """Make a temporary checkout of a revision of this repository. Raises CalledProcessError if the revision does not
    exist."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder, "tree")
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(tree), revision], check=True)
        try:
            yield tree
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def inventory_of(tree: Path, program: Path | None = None) -> Inventory:
    """Return the inventory of another checkout, made by its own code, or by a ``program`` that knows its older
    layout."""
    command = [str(program)] if program else ["-m", "climb.validation.rehash.inventory"]
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        environment = {**os.environ, "PYTHONPATH": str(tree), "WORKLOG_BACKEND": "emulator"}
        subprocess.run([sys.executable, *command, out.name], cwd=tree, env=environment, check=True)
        return json.loads(Path(out.name).read_text(encoding="utf-8"))


def convert(old: Inventory, renamed: Renamed, modules: dict[str, str] | None = None) -> Outcome:
    """Compare an older inventory with this checkout, and rewrite the records of this checkout.

    ``renamed`` gives, by ladder, today's name of each renamed rung; ``modules`` today's name of each moved module.
    """
    outcome = Outcome()
    new = inventory.inventory(renamed)
    proven = _proven_points(old, new, renamed, modules or {}, outcome)
    _rewrite_kept(old, new, renamed, proven, outcome)
    # Once more, since counts of kept code have a hash only now that the code is known to be today's.
    new["counts"] = inventory.counts()
    _add_counts(old, new, renamed, proven, outcome)
    _add_ladders(outcome)
    outcome.hashes |= {digest: new["faults"][name] for name, digest in old["faults"].items() if name in new["faults"]}
    outcome.hashes |= {digest: new["searches"][name] for name, digest in old["searches"].items()}
    for path in sorted(records.RECORDS.rglob("*.json")):
        _rewrite(path, outcome.hashes, renamed)
    return outcome


def _proven_points(
    old: Inventory, new: Inventory, renamed: Renamed, modules: dict[str, str], outcome: Outcome
) -> set[tuple[str, str, str]]:
    """Prove the points one by one; returns those proven, as (ladder, today's rung, size)."""
    today = {_key(point): point for point in new["points"]}
    proven = set()
    for point in old["points"]:
        module = modules.get(point["module"], point["module"])
        name = renamed.get(point["ladder"], {}).get(point["rung"], point["rung"])
        key = _key({**point, "module": module, "rung": name})
        label = f"{point['ladder']} '{name}' at {key[2]}"
        if key not in today:
            outcome.left.append(f"{label}: it is no longer there")
        elif proof.same_tokens(point, today[key]):
            outcome.by_tokens += 1
            proven.add(key)
        elif reason := proof.same_machine_code(point, today[key]):
            outcome.left.append(f"{label}: {reason}")
        else:
            outcome.by_machine_code += 1
            proven.add(key)
        if key in proven and outcome.hashes.setdefault(point["sha256"], today[key]["sha256"]) != today[key]["sha256"]:
            raise ValueError(f"{label}: another point with the same old hash has another new one")
    return proven


def _add_counts(
    old: Inventory, new: Inventory, renamed: Renamed, proven: set[tuple[str, str, str]], outcome: Outcome
) -> None:
    """Add the hashes of what was counted: of proven rungs and of the access patterns."""
    today = {json.dumps(one["key"], sort_keys=True): one["code_sha256"] for one in new["counts"]}
    for one in old["counts"]:
        key = dict(one["key"])
        ladder = key.get("ladder")
        if ladder:
            key["rung"] = renamed.get(ladder, {}).get(key["rung"], key["rung"])
        found = today.get(json.dumps(key, sort_keys=True))
        if ladder and (ladder, key["rung"], json.dumps(key["size"], sort_keys=True)) not in proven:
            found = None
        if found is not None:
            outcome.hashes[one["code_sha256"]] = found


def _add_ladders(outcome: Outcome) -> None:
    """Add the hashes of whole ladders, which rows of compute-sanitizer have: made from those of the recorded counts,
    whose hashes are to be rewritten. A ladder with an unproven rung gets a hash too, as stale as that rung's counts."""
    for path in sorted(records.RECORDS.glob("*/emulator/agreement.json")):
        counted = json.loads(path.read_text(encoding="utf-8"))["rungs"]
        for codes in clean.codes_by_ladder(counted).values():
            now = clean.code_of(outcome.hashes.get(code, code) for code in codes)
            outcome.hashes[clean.code_of(codes)] = now


def _rewrite_kept(
    old: Inventory, new: Inventory, renamed: Renamed, proven: set[tuple[str, str, str]], outcome: Outcome
) -> None:
    """Update the origin of kept code; the code itself stays unchanged."""
    places = {"kept": "*/emulator/code/*.json", "shown": "*/code/*.json"}
    for kind, path in ((kind, path) for kind, place in places.items() for path in sorted(records.RECORDS.glob(place))):
        ladder, _, name = path.stem.partition(".")
        today = renamed.get(ladder, {}).get(name, name)
        data = json.loads(path.read_text(encoding="utf-8"))
        was, now = old.get(kind, {}).get(path.stem), new[kind].get(f"{ladder}.{today}")
        if was is None or now is None or was["made_from"] != data["made_from"]:
            outcome.left.append(f"kept code of {ladder} {name}: stale before, or no longer there")
            continue
        if not any(key[:2] == (ladder, today) for key in proven):
            outcome.left.append(f"kept code of {ladder} {name}: its rung is not proven")
            continue
        data = {"made_from": now["made_from"], "filename": was["filename"], "lowered": was["lowered"], **data}
        data["made_from"] = now["made_from"]
        records.write_whole(path.with_name(f"{ladder}.{today}.json"), json.dumps(data, indent=1) + "\n")
        if today != name:
            path.unlink()


def _rewrite(path: Path, hashes: dict[str, str], renamed: Renamed) -> None:
    """Replace hashes, and names of renamed rungs, in one file; every other letter stays unchanged."""
    text = path.read_text(encoding="utf-8")
    for was, now in hashes.items():
        text = text.replace(f'"{was}"', f'"{now}"')
    own = re.search(r'^ "ladder": "(\w+)"', text, re.MULTILINE)
    for ladder, names in renamed.items():
        for was, now in names.items():
            # A point names only its rung in a record of one ladder, and also its ladder in a record of many.
            text = re.sub(rf'("ladder": "{ladder}",\s*"rung": )"{was}"', rf'\1"{now}"', text)
            # The points that ceilings come from also name their ladder.
            text = re.sub(rf'("ladder": "{ladder}",[^{{}}]*"point": \{{\s*"name": )"{was}"', rf'\1"{now}"', text)
            text = text.replace(f'"label": "{ladder} {was},', f'"label": "{ladder} {now},')
            if own and own[1] == ladder:
                text = text.replace(f'"name": "{was}"', f'"name": "{now}"')
    if text != path.read_text(encoding="utf-8"):
        records.write_whole(path, text)


def _key(point: dict[str, Any]) -> tuple[str, str, str]:
    return point["module"], point["rung"], json.dumps(point["size"], sort_keys=True)
