"""The results of the mutants, as text and as a file that is committed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from climb.bench import records
from climb.validation.mutation.running import Outcome
from climb.validation.mutation.survivors import (
    NO_REASON,
    Known,
    contradiction,
    counts,
    explanation,
    is_equivalent,
    killed_by_named_test,
)


def line_of(outcome: Outcome, number: int, count: int) -> str:
    """Format one mutant's line of progress."""
    where = f"{outcome.file}:{outcome.line}"
    return f"[{number}/{count}] {outcome.status:9} {outcome.seconds:5.1f} s  {where} {outcome.operator}  {outcome.how}"


def summary(outcomes: Sequence[Outcome], known: Sequence[Known]) -> str:
    """Report how many were killed, by kind of mistake, and every survivor with its reason or the lack of one.

    The share is the mutation score: killed mutants divided by all that are not equivalent. The effects of the known
    survivors' entries are listed below: mutants that were replaced, mutants that a named test killed, and wrong
    entries.
    """
    decided = [outcome for outcome in outcomes if counts(outcome, known)]
    killed = [outcome for outcome in decided if outcome.status == "killed"]
    alive = [outcome for outcome in decided if outcome.status != "killed"]
    replaced = [outcome for outcome in outcomes if is_equivalent(outcome, known)]
    named = [outcome for outcome in killed if killed_by_named_test(outcome, known)]
    hung = sum(outcome.how.startswith("hangs") for outcome in killed)
    status = Counter(outcome.status for outcome in outcomes)
    lines = [
        f"{len(killed)} of {len(decided)} mutants killed ({_share(len(killed), len(decided))}), "
        f"{hung} of them because they hang, {len(named)} by a test that survivors.json names for them",
        f"not counted, and replaced by others: {status['invalid']} that do not compile, "
        f"{status['same']} that compile to the same code, {len(replaced)} that survive because they are equivalent",
    ]
    by_operator = Counter((outcome.operator, outcome.status == "killed") for outcome in decided)
    for operator in sorted({operator for operator, _ in by_operator}):
        dead, living = by_operator[operator, True], by_operator[operator, False]
        lines.append(f"  {operator:12} {dead} of {dead + living}")
    for outcome in alive:
        why = explanation(known, outcome)
        lines += [
            f"{outcome.status}: {_mistake(outcome)}",
            f"    {why.kind}: {why.reason}" if why else f"    {NO_REASON}",
        ]
    sections = (
        ("equivalent, replaced by others", replaced, lambda outcome: explanation(known, outcome).reason),
        ("killed by the test that survivors.json names", named, lambda outcome: outcome.how),
        ("WRONG ENTRIES in survivors.json", outcomes, lambda outcome: contradiction(outcome, known)),
    )
    for title, listed, remark in sections:
        remarks = [(outcome, remark(outcome)) for outcome in listed]
        if remarks := [f"  {_mistake(outcome)}\n    {text}" for outcome, text in remarks if text]:
            lines += [f"{title}:", *remarks]
    return "\n".join(lines)


def _mistake(outcome: Outcome) -> str:
    """Describe a mutant by its place, and its lines before and after."""
    head = f"{outcome.file}:{outcome.line} {outcome.operator}"
    remark = "" if outcome.status == "killed" else outcome.how
    return f"{head} {remark}".rstrip() + f"\n    - {outcome.original}\n    + {outcome.mutated}"


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole if whole else 0.0:.1f} %"


def load_results(path: Path) -> dict[str, Outcome]:
    """Load outcomes of earlier runs by key; empty if the file is missing or has another form."""
    try:
        return {outcome.key: outcome for outcome in records.load(path, _Results).mutants}
    except (OSError, records.RecordError):
        return {}


@dataclass(frozen=True)
class _Results:
    """A file of outcomes, whatever else it holds."""

    mutants: list[Outcome]


@dataclass(frozen=True)
class _Saved:
    """The file of a ``Run``."""

    seed: int
    revision: str
    known: list[Known]
    mutants: list[Outcome]


@dataclass(frozen=True)
class Run:
    """A complete mutation run, as it is committed: seed, revision, outcomes in draw order, and the entries of
    ``survivors.json`` at that time."""

    seed: int
    revision: str
    outcomes: list[Outcome]
    known: list[Known]

    @classmethod
    def of(cls, seed: int, revision: str, outcomes: Sequence[Outcome], known: Sequence[Known]) -> Run:
        """Make a run with the entries of the mutants that it met."""
        met = [one for one in known if any(explanation([one], outcome) for outcome in outcomes)]
        return cls(seed, revision, list(outcomes), met)

    @classmethod
    def load(cls, path: Path) -> Run:
        """Load the run in a file. Raises RecordError if it has another form."""
        data = records.load(path, _Saved)
        return cls(data.seed, data.revision, data.mutants, data.known)

    def save(self, path: Path) -> None:
        """Write the run, one outcome per line, and beside it its report as text."""
        known = [{name: value for name, value in asdict(one).items() if value} for one in self.known]
        head = {"seed": self.seed, "revision": self.revision, "known": known}
        rows = ",\n".join(json.dumps(asdict(outcome)) for outcome in self.outcomes)
        text = json.dumps(head, indent=1)[:-2] + f',\n "mutants": [\n{rows}\n ]\n}}\n'
        records.save(path, None, _Saved, text)
        path.with_suffix(".txt").write_text(self.text(), encoding="utf-8")

    def text(self) -> str:
        """The report of the run."""
        head = f"Made by `make mutate ARGS=--save` at {self.revision}, seed {self.seed}."
        return f"{head}\n\n{summary(self.outcomes, self.known)}\n"
