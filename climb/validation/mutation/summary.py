"""What came of the mutants, and the survivors that are known: which, and why no test can or need notice them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from climb.validation.mutation.mutants import Mutant
from climb.validation.mutation.running import SAME_CODE, Outcome

EQUIVALENT = Path(__file__).with_name("equivalent.json")


@dataclass(frozen=True)
class Known:
    """A mutant that survives for a reason: the lines as they are and with the mistake, without indentation."""

    file: str
    original: str
    mutated: str
    reason: str


def known_survivors(path: Path = EQUIVALENT) -> list[Known]:
    """The committed survivors. Raises ValueError for an entry without a reason, or one that is there twice."""
    entries = [Known(**entry) for entry in json.loads(path.read_text(encoding="utf-8"))]
    places = [(one.file, one.original, one.mutated) for one in entries]
    for one, place in zip(entries, places, strict=True):
        if not one.reason.strip():
            raise ValueError(f"{path.name}: {one.file}: {one.mutated}: no reason is given")
        if places.count(place) > 1:
            raise ValueError(f"{path.name}: {one.file}: {one.mutated} is there twice")
    return entries


def reason_of(known: Iterable[Known], mutant: Mutant | Outcome) -> str | None:
    """Why a mutant is known to survive, or None. One that compiles to the same PTX needs no entry."""
    if isinstance(mutant, Outcome) and SAME_CODE in mutant.how:
        return "Equivalent: the compiler makes the same program of it."
    if isinstance(mutant, Mutant):
        place = (mutant.file, mutant.original_line, mutant.mutated_line)
    else:
        place = (mutant.file, mutant.original, mutant.mutated)
    return next((one.reason for one in known if (one.file, one.original, one.mutated) == place), None)


def line_of(outcome: Outcome, number: int, count: int) -> str:
    """One mutant's line of progress."""
    where = f"{outcome.file}:{outcome.line}"
    return f"[{number}/{count}] {outcome.status:9} {outcome.seconds:5.1f} s  {where} {outcome.operator}  {outcome.how}"


def summary(outcomes: Sequence[Outcome], known: Sequence[Known]) -> str:
    """How many were killed, by kind of mistake, and every survivor with its reason or the lack of one."""
    decided = [outcome for outcome in outcomes if outcome.status != "invalid"]
    killed = [outcome for outcome in decided if outcome.status == "killed"]
    hung = sum(outcome.how.startswith("hangs") for outcome in killed)
    share = 100 * len(killed) / len(decided) if decided else 0.0
    lines = [f"{len(killed)} of {len(decided)} mutants killed ({share:.1f} %), {hung} of them because they hang; "
             f"{len(outcomes) - len(decided)} more did not compile and are not counted"]  # fmt: skip
    by_operator = Counter((outcome.operator, outcome.status == "killed") for outcome in decided)
    for operator in sorted({operator for operator, _ in by_operator}):
        dead, alive = by_operator[operator, True], by_operator[operator, False]
        lines.append(f"  {operator:12} {dead} of {dead + alive}")
    for outcome in (outcome for outcome in decided if outcome.status != "killed"):
        reason = reason_of(known, outcome) or "NO REASON IS KNOWN"
        lines += [
            f"{outcome.status}: {outcome.file}:{outcome.line} {outcome.operator} {outcome.how}".rstrip(),
            f"    - {outcome.original}",
            f"    + {outcome.mutated}",
            f"    {reason}",
        ]
    return "\n".join(lines)


def unexplained(outcomes: Iterable[Outcome], known: Sequence[Known]) -> list[Outcome]:
    """The survivors that have no reason."""
    alive = (outcome for outcome in outcomes if outcome.status in ("survived", "unreached"))
    return [outcome for outcome in alive if reason_of(known, outcome) is None]


def load_results(path: Path) -> dict[str, Outcome]:
    """Outcomes of earlier runs by key; none where the file is not there or of another form."""
    try:
        entries: list[Mapping] = json.loads(path.read_text(encoding="utf-8"))["mutants"]
        return {entry["key"]: Outcome(**entry) for entry in entries}
    except (OSError, ValueError, KeyError, TypeError):
        return {}
