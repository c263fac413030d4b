"""An outcome in words and numbers: the counters that an edit changed, compared with the original kernel."""

from __future__ import annotations

from dataclasses import dataclass

from climb.bench.edits import Outcome
from climb.bench.units import significant
from climb.emulator import Counters

#: Counts that differ by a smaller share are equal in a sentence; the table still shows them.
_NEAR = 0.02
#: A change below this ratio is stated in percent.
_CLEARLY = 1.15
_MOST_NAMED = 2
_FRACTIONS = {2: "half", 3: "a third of", 4: "a quarter of"}

TITLES = {
    "compile": "Does not compile",
    "fault": "Stopped by the emulator",
    "wrong": "Wrong result",
    "right": "Right",
    "ran": "Runs",
}

_FAULTS = {
    "OutOfBounds": "an access out of bounds",
    "Misaligned": "a misaligned access",
    "Race": "a race",
    "AsyncRace": "a race with an asynchronous copy",
    "Uninitialised": "a read of memory that nothing has written",
    "BarrierDivergence": "a barrier that not all threads reach",
    "WarpMismatch": "lanes of a warp that do not act together",
    "EndlessLoop": "an endless loop",
    "AssertionFailed": "an assertion that does not hold",
    "Trap": "the kernel stops itself",
    "LaunchError": "a launch that is not possible",
    "UnsupportedInstruction": "an instruction that the emulator does not support",
}


@dataclass(frozen=True)
class Count:
    """One count of a kernel; ``requests`` is 0 for counts other than memory accesses."""

    name: str
    value: int
    requests: int = 0

    @property
    def text(self) -> str:
        """Format the count, for accesses to memory with its rate: ``1024 (4 per request)``."""
        if not self.requests:
            return str(self.value)
        each = significant(self.value / self.requests).rstrip("0").rstrip(".") if self.value % self.requests else ""
        return f"{self.value} ({each or self.value // self.requests} per request)"


def sentence(outcome: Outcome, before: Outcome | None = None, same_data: bool = True) -> str:
    """Describe an outcome, without a full stop: ``Right, with 32 times the wavefronts of shared loads``.

    ``before`` is the outcome without the edit, or None for that outcome itself. Counts are compared only if both worked
    on the ``same_data``.
    """
    title = TITLES[outcome.kind]
    if outcome.kind == "fault":
        return f"{title}: {_fault(outcome)}"
    if outcome.kind == "compile" or outcome.counters is None:
        return title
    if outcome.kind == "wrong":
        return f"{title}: {outcome.message}"
    diverged = before is not None and before.counters is not None and before.counters.divergent_branches > 0
    rates = _rates(outcome.counters, diverged)
    counted = f": {rates}" if rates else ""
    if before is None:
        return title + counted
    if not same_data:
        return f"{title} for this data{counted}"
    if before.kind not in ("right", "ran") or before.counters is None:
        return f"{title}, the edit mends it{counted}"
    changes = _told(before.counters, outcome.counters)
    if changes:
        return f"{title}, {changes}"
    nearly = "practically " if changed(before.counters, outcome.counters) else ""
    return f"{title}, and the counts are {nearly}as before"


def _fault(outcome: Outcome) -> str:
    """Return the kind of error in a few words."""
    return _FAULTS.get(type(outcome.error).__name__) or outcome.message.partition(":")[0]


def changed(before: Counters, after: Counters) -> list[tuple[str, str, str]]:
    """Return the counts that differ: name, before, after."""
    old, new = ({c.name: c for c in counts(one)} for one in (before, after))
    names = [*old, *(name for name in new if name not in old)]
    return [(n, _cell(old.get(n)), _cell(new.get(n))) for n in _ordered(names) if old.get(n) != new.get(n)]


def counts(counters: Counters) -> list[Count]:
    """Return all counts of a kernel that a reader compares."""
    found: list[Count] = []
    for kind in dict.fromkeys(line.kind for line in counters.lines):
        total = counters.total(kind)
        if kind.startswith("shared"):
            found.append(Count(f"{kind}s: wavefronts", total.wavefronts, total.requests))
            found.append(Count(f"{kind}s: bank conflicts", total.bank_conflicts))
        else:
            found.append(Count(f"{kind}s: sectors", total.sectors, total.requests))
        found.append(Count(f"{kind}s: requests", total.requests))
        if kind.endswith("atomic"):
            found.append(Count(f"{kind}s: lanes that share an address", total.same_address))
    found.append(Count("divergent branches", counters.divergent_branches))
    found.append(Count("barriers", counters.barriers))
    found.append(Count("warp instructions", counters.warp_instructions))
    return found


def _ordered(names: list[str]) -> list[str]:
    """Sort memory first, by kind; then the rest."""
    return sorted(names, key=lambda name: (":" not in name, name.partition(":")[0] if ":" in name else ""))


def _cell(count: Count | None) -> str:
    return count.text if count else "none"


def _rates(counters: Counters, diverged: bool) -> str:
    """List the costs of a request, and branches: ``4 sectors per global load, 32 wavefronts per shared load``.

    With ``diverged`` it also says that no branch diverges.
    """
    found = []
    for kind in sorted({line.kind for line in counters.lines}):
        total = counters.total(kind)
        unit = "wavefront" if kind.startswith("shared") else "sector"
        value = total.wavefronts if kind.startswith("shared") else total.sectors
        if not total.requests or not value:
            continue
        each = value / total.requests
        shown = significant(each).rstrip("0").rstrip(".") if value % total.requests else str(value // total.requests)
        found.append(f"{shown} {unit}{'' if shown == '1' else 's'} per {kind}")
    if split := counters.divergent_branches:
        found.append(f"{split} of {counters.branches} branches {'diverges' if split == 1 else 'diverge'}")
    elif diverged and counters.branches:
        found.append(f"none of {counters.branches} branches diverges")
    return ", ".join(found)


def _told(before: Counters, after: Counters) -> str:
    """Describe the greatest changes as ``with ... and ...``; empty if no count changed by more than ``_NEAR``."""
    old, new = ({c.name: c.value for c in counts(one)} for one in (before, after))
    names = list({**old, **new})
    costs = [name for name in names if name.endswith((": sectors", ": wavefronts"))]
    others = [name for name in names if name.endswith((": requests", "share an address")) or ":" not in name]
    for group in (costs, others):
        moved = [(name, old.get(name, 0), new.get(name, 0)) for name in group]
        moved = [one for one in moved if _apart(one[1], one[2])]
        moved.sort(key=lambda one: -_size(one[1], one[2]))
        if moved:
            return f"with {_joined([_phrase(*one) for one in moved[:_MOST_NAMED]])}"
    return ""


def _joined(phrases: list[str]) -> str:
    """Join two phrases with "and", stating their common beginning once: ``half the sectors of global loads and
    stores``."""
    first, second = phrases[0], phrases[-1]
    head, of, kind = first.rpartition(" of ")
    if first == second:
        return first
    if of and second.startswith(head + of):
        other = second[len(head + of) :]
        space = kind.partition(" ")[0]
        return f"{first} and {other.removeprefix(space + ' ')}"
    return f"{first} and {second}"


def _apart(old: int, new: int) -> bool:
    return abs(new - old) > _NEAR * max(old, new)


def _size(old: int, new: int) -> float:
    return max(old, new) / max(min(old, new), 0.5)


def _phrase(name: str, old: int, new: int) -> str:
    kind, _, unit = name.partition(": ")
    what = f"{unit} of {kind}" if unit else kind
    if not old:
        return f"{new} {what} where there were none"
    if not new:
        return f"no {what}"
    if old < new < _CLEARLY * old:
        return f"{round(100 * (new / old - 1))} % more {what}"
    if old > new > old / _CLEARLY:
        return f"{round(100 * (1 - new / old))} % fewer {what}"
    return f"{_times(old, new)} the {what}"


def _times(old: int, new: int) -> str:
    if new >= old:
        return f"{_short(new / old)} times"
    ratio = old / new
    whole = round(ratio)
    if whole > 1 and abs(ratio - whole) < _NEAR * ratio:
        return _FRACTIONS.get(whole, f"1/{whole} of")
    return f"{round(100 * new / old)} % of"


def _short(ratio: float) -> str:
    """Format two digits below ten, whole numbers above: ``1.5``, ``32``, ``8.5``, ``128``."""
    text = significant(ratio, 2) if ratio < 9.95 else f"{ratio:.0f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
