"""The mutants that are known to survive the tests chosen for them, and the meaning of an entry of ``survivors.json``.

The run must confirm an entry. A mutant that is called equivalent is replaced by another, as one that compiles to the
same code is, but only once it has survived. A mutant with a named test is given that test first, and must be killed by
it. An entry that the run contradicts is wrong, and makes the command fail.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from climb.bench import records
from climb.validation.mutation.mutants import Mutant
from climb.validation.mutation.running import NOT_COUNTED, Outcome

KNOWN = Path(__file__).with_name("survivors.json")
#: Kinds of entries, and their meaning for the mutant.
KINDS = {
    "equivalent": "no test can tell it from the original",
    "noticed": "the named test kills it, which is not among those chosen for it",
    "hardware": "only a GPU can tell",
}
NO_REASON = "NO REASON IS KNOWN"
_ALIVE = ("survived", "unreached")


@dataclass(frozen=True)
class Known:
    """A mutant that the chosen tests do not kill: its lines as they are and with the mistake, without indentation.

    ``test`` is the id of the test that kills one of the kind "noticed". ``place`` is given if the same line occurs at
    several places of the file, and the entry is right at only one of them (``Mutant.place``).
    """

    file: str
    original: str
    mutated: str
    kind: str
    reason: str
    test: str = ""
    place: int = 0


def known_survivors(path: Path = KNOWN) -> list[Known]:
    """Load the committed entries. Raises ValueError for an entry without a reason, of an unknown kind, or that occurs
    twice; also for a test on an entry of another kind than "noticed", and for an entry of this kind without a test.
    Raises RecordError if the file has another form."""
    entries = records.load(path, list[Known])
    places = [(one.file, one.original, one.mutated, one.place) for one in entries]
    for one, place in zip(entries, places, strict=True):
        name = f"{path.name}: {one.file}: {one.mutated}"
        if not one.reason.strip():
            raise ValueError(f"{name}: no reason is given")
        if one.kind not in KINDS:
            raise ValueError(f"{name}: no kind {one.kind!r}; there are {list(KINDS)}")
        if ("::" in one.test) != (one.kind == "noticed"):
            raise ValueError(f"{name}: of kind {one.kind}, but its test is {one.test!r}")
        if places.count(place) > 1:
            raise ValueError(f"{name} is there twice")
    return entries


def explanation(known: Iterable[Known], mutant: Mutant | Outcome) -> Known | None:
    """Return the entry of a mutant, or None."""
    if isinstance(mutant, Mutant):
        lines = (mutant.file, mutant.original_line, mutant.mutated_line)
    else:
        lines = (mutant.file, mutant.original, mutant.mutated)
    fitting = (one for one in known if (one.file, one.original, one.mutated) == lines)
    return next((one for one in fitting if one.place in (0, mutant.place)), None)


def named_test(known: Iterable[Known], mutant: Mutant) -> str:
    """Return the id of the test that the entry of a mutant names, or ""."""
    entry = explanation(known, mutant)
    return entry.test if entry else ""


def is_equivalent(outcome: Outcome, known: Iterable[Known]) -> bool:
    """Return whether a mutant has survived, and is known as equivalent."""
    entry = explanation(known, outcome)
    return entry is not None and entry.kind == "equivalent" and outcome.status in _ALIVE


def counts(outcome: Outcome, known: Iterable[Known]) -> bool:
    """Return whether tests have to kill a mutant: it compiles, to another program, and is not a confirmed equivalent.
    Each mutant for which this is False is replaced by another."""
    return outcome.status not in NOT_COUNTED and not is_equivalent(outcome, known)


def killed_by_named_test(outcome: Outcome, known: Iterable[Known]) -> bool:
    """Return whether a mutant was killed by the test that its entry names, with any parameters."""
    entry = explanation(known, outcome)
    return (
        entry is not None
        and bool(entry.test)
        and outcome.status == "killed"
        and (outcome.how == entry.test or outcome.how.startswith(f"{entry.test}["))
    )


def contradiction(outcome: Outcome, known: Iterable[Known]) -> str:
    """Explain what is wrong with a mutant's entry, given the mutant's outcome; "" if nothing is."""
    entry = explanation(known, outcome)
    if entry is None or outcome.status in NOT_COUNTED:
        return ""
    if entry.kind == "noticed":
        if outcome.status in _ALIVE:
            return f"{entry.test} is named for it, but does not kill it"
        wrong = outcome.how.startswith("tests/") and not killed_by_named_test(outcome, known)
        return f"{entry.test} is named for it, but {outcome.how} kills it" if wrong else ""
    return f"called {entry.kind}, but killed: {outcome.how}" if outcome.status == "killed" else ""


def unexplained(outcomes: Iterable[Outcome], known: Iterable[Known]) -> list[Outcome]:
    """Return the survivors that have no entry, or one that the run contradicts."""
    known = list(known)
    alive = (outcome for outcome in outcomes if outcome.status in _ALIVE)
    return [outcome for outcome in alive if explanation(known, outcome) is None or contradiction(outcome, known)]


def reusable(outcomes: Mapping[str, Outcome], known: Iterable[Known], again: bool) -> dict[str, Outcome]:
    """Return the outcomes of earlier runs that can be reused: not those that contradict their entry, or are killed
    without the test that it names; and if survivors are to be run ``again``, no survivors."""
    known = list(known)

    def stands(outcome: Outcome) -> bool:
        entry = explanation(known, outcome)
        if entry is not None and entry.test and outcome.status not in NOT_COUNTED:
            return killed_by_named_test(outcome, known)
        return not contradiction(outcome, known) and not (again and outcome.status in _ALIVE)

    return {key: outcome for key, outcome in outcomes.items() if stands(outcome)}
