"""What came of the mutants, and the survivors that are known: which, and why no test can or need notice them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from climb.validation.mutation.mutants import Mutant
from climb.validation.mutation.running import NOT_COUNTED, Outcome

KNOWN = Path(__file__).with_name("survivors.json")
#: Kinds of known survivors, and what is said of each.
KINDS = {
    "equivalent": "no test can tell them from the original",
    "noticed": "a test notices them that the command does not run",
    "hardware": "only a GPU can tell",
}


@dataclass(frozen=True)
class Known:
    """A mutant that survives for a reason: the lines as they are and with the mistake, without indentation."""

    file: str
    original: str
    mutated: str
    kind: str
    reason: str


def known_survivors(path: Path = KNOWN) -> list[Known]:
    """The committed survivors. Raises ValueError for an entry without a reason, of no known kind, or there twice."""
    entries = [Known(**entry) for entry in json.loads(path.read_text(encoding="utf-8"))]
    places = [(one.file, one.original, one.mutated) for one in entries]
    for one, place in zip(entries, places, strict=True):
        if not one.reason.strip():
            raise ValueError(f"{path.name}: {one.file}: {one.mutated}: no reason is given")
        if one.kind not in KINDS:
            raise ValueError(f"{path.name}: {one.file}: {one.mutated}: no kind {one.kind!r}; there are {list(KINDS)}")
        if places.count(place) > 1:
            raise ValueError(f"{path.name}: {one.file}: {one.mutated} is there twice")
    return entries


def explanation(known: Iterable[Known], mutant: Mutant | Outcome) -> Known | None:
    """The entry that says why a mutant survives, or None."""
    if isinstance(mutant, Mutant):
        place = (mutant.file, mutant.original_line, mutant.mutated_line)
    else:
        place = (mutant.file, mutant.original, mutant.mutated)
    return next((one for one in known if (one.file, one.original, one.mutated) == place), None)


def line_of(outcome: Outcome, number: int, count: int) -> str:
    """One mutant's line of progress."""
    where = f"{outcome.file}:{outcome.line}"
    return f"[{number}/{count}] {outcome.status:9} {outcome.seconds:5.1f} s  {where} {outcome.operator}  {outcome.how}"


def summary(outcomes: Sequence[Outcome], known: Sequence[Known]) -> str:
    """How many were killed, by kind of mistake, and every survivor with its reason or the lack of one."""
    decided = [outcome for outcome in outcomes if outcome.status not in NOT_COUNTED]
    killed = [outcome for outcome in decided if outcome.status == "killed"]
    alive = [outcome for outcome in decided if outcome.status != "killed"]
    hung = sum(outcome.how.startswith("hangs") for outcome in killed)
    status = Counter(outcome.status for outcome in outcomes)
    kinds = Counter(one.kind for one in (explanation(known, outcome) for outcome in alive) if one is not None)
    lines = [
        f"{len(killed)} of {len(decided)} mutants killed ({_share(len(killed), len(decided))}), "
        f"{hung} of them because they hang; not counted: {status['invalid']} that do not compile, "
        f"{status['same']} that compile to the same code"
    ]
    lines += [f"  {kinds[kind]} survivors are {kind}: {meaning}" for kind, meaning in KINDS.items() if kinds[kind]]
    mistakes = len(decided) - kinds["equivalent"]
    noticed = len(killed) + kinds["noticed"]
    lines.append(f"  {noticed} of the {mistakes} that a test can notice are noticed ({_share(noticed, mistakes)})")
    by_operator = Counter((outcome.operator, outcome.status == "killed") for outcome in decided)
    for operator in sorted({operator for operator, _ in by_operator}):
        dead, living = by_operator[operator, True], by_operator[operator, False]
        lines.append(f"  {operator:12} {dead} of {dead + living}")
    for outcome in alive:
        why = explanation(known, outcome)
        lines += [
            f"{outcome.status}: {outcome.file}:{outcome.line} {outcome.operator} {outcome.how}".rstrip(),
            f"    - {outcome.original}",
            f"    + {outcome.mutated}",
            f"    {why.kind}: {why.reason}" if why else "    NO REASON IS KNOWN",
        ]
    return "\n".join(lines)


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole if whole else 0.0:.1f} %"


def unexplained(outcomes: Iterable[Outcome], known: Sequence[Known]) -> list[Outcome]:
    """The survivors that have no reason."""
    alive = (outcome for outcome in outcomes if outcome.status in ("survived", "unreached"))
    return [outcome for outcome in alive if explanation(known, outcome) is None]


def load_results(path: Path) -> dict[str, Outcome]:
    """Outcomes of earlier runs by key; none where the file is not there or of another form."""
    try:
        entries: list[Mapping] = json.loads(path.read_text(encoding="utf-8"))["mutants"]
        return {entry["key"]: Outcome(**entry) for entry in entries}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


@dataclass(frozen=True)
class Run:
    """A whole run, as it is committed: of which seed and revision, every outcome in the order in which they were drawn,
    and the survivors that were explained at that time."""

    seed: int
    revision: str
    outcomes: list[Outcome]
    known: list[Known]

    @classmethod
    def of(cls, seed: int, revision: str, outcomes: Sequence[Outcome], known: Sequence[Known]) -> Run:
        """A run with those of the known survivors that it met."""
        alive = [outcome for outcome in outcomes if outcome.status in ("survived", "unreached")]
        met = [one for one in known if any(explanation([one], outcome) for outcome in alive)]
        return cls(seed, revision, list(outcomes), met)

    @classmethod
    def load(cls, path: Path) -> Run:
        """The run in a file."""
        data = json.loads(path.read_text(encoding="utf-8"))
        outcomes = [Outcome(**entry) for entry in data["mutants"]]
        return cls(data["seed"], data["revision"], outcomes, [Known(**entry) for entry in data["known"]])

    def save(self, path: Path) -> None:
        """Write the run, one outcome a line, and beside it what it came to, as text."""
        head = {"seed": self.seed, "revision": self.revision, "known": [asdict(one) for one in self.known]}
        rows = ",\n".join(json.dumps(asdict(outcome)) for outcome in self.outcomes)
        text = json.dumps(head, indent=1)[:-2] + f',\n "mutants": [\n{rows}\n ]\n}}\n'
        path.write_text(text, encoding="utf-8")
        path.with_suffix(".txt").write_text(self.text(), encoding="utf-8")

    def text(self) -> str:
        """What the run came to."""
        head = f"Made by `make mutate ARGS=--save` at {self.revision}, seed {self.seed}."
        return f"{head}\n\n{summary(self.outcomes, self.known)}\n"
