"""Expectations about a launch: for tests of kernels, in pytest or any other framework.

from climb.emulator import expect, run

def test_copy_is_coalesced():
    x, y = np.arange(1000, dtype=np.float32), np.zeros(1000, np.float32)
    result = run("copy.cu", grid=4, block=256, args=[x, y, 1000])      # raises at a fault of the kernel
    expect(result).clean().at_most("global load sectors", 125).equal("bank conflicts", 0)

A quantity is one of `TOTALS`, or the kind of an access and one of `UNITS`, such as "global load sectors per request",
"shared store wavefronts", "global atomic requests". With `line` it is that of one source line, or of the lines that
contain a text.
"""

from __future__ import annotations

import difflib
import math
from dataclasses import dataclass

from .counters.counters import Counters
from .counters.lines import AccessCounters
from .running import Result

SPACES = ("global", "shared", "local", "generic", "cluster", "matrix", "tma")
ACTIONS = ("load", "store", "atomic")
#: The counts of an access, by the words after its kind.
UNITS = {
    "requests": "requests",
    "bytes": "bytes",
    "sectors": "sectors",
    "ideal sectors": "ideal_sectors",
    "wavefronts": "wavefronts",
    "ideal wavefronts": "ideal_wavefronts",
    "bank conflicts": "bank_conflicts",
    "lanes at a shared address": "same_address",
}
PER_REQUEST = " per request"
#: The counts of a launch as a whole.
TOTALS = (
    "warp instructions",
    "thread instructions",
    "lane efficiency",
    "branches",
    "divergent branches",
    "barriers",
    "bank conflicts",
)
_LAUNCH_ONLY = ("barriers",)


def expect(result: Result | Counters) -> Expectations:
    """Begin a chain of expectations about a launch. Each raises AssertionError if it does not hold."""
    counters = result if isinstance(result, Counters) else result.counters
    return Expectations(counters, None if isinstance(result, Counters) else result)


@dataclass(frozen=True)
class Expectations:
    """Expectations of a test on the `counters` of a launch. Methods return the same object, so that calls chain.

    Methods that take a `quantity` raise ValueError if there is none of that name, or no such `line`.
    """

    counters: Counters
    result: Result | None = None

    def clean(self) -> Expectations:
        """Expect no notes, such as memory left allocated, and outputs that do not depend on the schedule.

        `run` itself raises an EmulatorError at a fault.
        """
        __tracebackhide__ = True
        comparison = self.result.comparison if self.result else None
        if comparison:
            raise AssertionError(str(comparison))
        if self.counters.notes:
            raise AssertionError("\n".join(("the launch has notes:", *self.counters.notes)))
        return self

    def at_most(self, quantity: str, bound: float, *, line: int | str | None = None) -> Expectations:
        """Expect a quantity of `bound` or less."""
        __tracebackhide__ = True
        return self._hold(quantity, line, f"at most {bound:g}", lambda value: value <= bound)

    def at_least(self, quantity: str, bound: float, *, line: int | str | None = None) -> Expectations:
        """Expect a quantity of `bound` or more."""
        __tracebackhide__ = True
        return self._hold(quantity, line, f"at least {bound:g}", lambda value: value >= bound)

    def equal(self, quantity: str, value: float, *, line: int | str | None = None) -> Expectations:
        """Expect exactly this value; a rate may differ by rounding."""
        __tracebackhide__ = True
        return self._hold(quantity, line, f"{value:g}", lambda found: math.isclose(found, value, rel_tol=1e-12))

    def ideal(self, kind: str, *, line: int | str | None = None) -> Expectations:
        """Expect the fewest possible sectors, or wavefronts, of a kind of access such as "global load"."""
        __tracebackhide__ = True
        unit = "wavefronts" if kind.startswith(("shared", "matrix")) else "sectors"
        return self.at_most(f"{kind} {unit}", self.value(f"{kind} ideal {unit}", line=line), line=line)

    def value(self, quantity: str, *, line: int | str | None = None) -> float:
        """Return the quantity; 0 if the launch has no such access. NaN is a rate without requests."""
        if quantity in TOTALS:
            return self._total(quantity, line)
        chosen = self._accesses(quantity, line)
        unit = UNITS[_unit(quantity)]
        amount = sum(getattr(one, unit) for one in chosen)
        if not quantity.endswith(PER_REQUEST):
            return amount
        requests = sum(one.requests for one in chosen)
        return amount / requests if requests else math.nan

    def _hold(self, quantity: str, line: int | str | None, wanted: str, holds: object) -> Expectations:
        __tracebackhide__ = True
        found = self.value(quantity, line=line)
        if holds(found):
            return self
        out = [f"{quantity}: {found:g}, expected {wanted}"]
        for one in [] if quantity in TOTALS else self._accesses(quantity, line):
            out.append(
                f"  line {one.line}: {getattr(one, UNITS[_unit(quantity)])}, {one.requests} requests: {one.text}"
            )
        raise AssertionError("\n".join(out))

    def _accesses(self, quantity: str, line: int | str | None) -> list[AccessCounters]:
        kind = " ".join(quantity.split()[:2])
        self._known_line(line)
        return [one for one in self.counters.lines if one.kind == kind and _at(one, line)]

    def _total(self, quantity: str, line: int | str | None) -> float:
        self._known_line(line)
        if quantity == "bank conflicts":
            return sum(one.bank_conflicts for one in self.counters.lines if _at(one, line))
        name = quantity.replace(" ", "_")
        if line is None:
            return getattr(self.counters, name)
        if quantity in _LAUNCH_ONLY:
            raise ValueError(f"'{quantity}' is counted for a launch, not for a line")
        if "branches" in quantity:
            return sum(getattr(one, name) for one in self.counters.branch_lines if _at(one, line))
        texts = {
            (file, n): text for file, held in self.counters.files.items() for n, text in enumerate(held, 1) if text
        }
        chosen = [
            one
            for one in self.counters.execution_lines
            if (one.line == line if isinstance(line, int) else line in texts.get((one.file, one.line), ""))
        ]
        warps, threads = (sum(getattr(one, f"{n}_instructions") for one in chosen) for n in ("warp", "thread"))
        if quantity == "lane efficiency":
            return threads / (32 * warps) if warps else math.nan
        return warps if quantity == "warp instructions" else threads

    def _known_line(self, line: int | str | None) -> None:
        """Raise ValueError for a line that no file of the kernel has: a test of it would always pass."""
        if line is None or not self.counters.files:
            return
        files = self.counters.files.values()
        if isinstance(line, int):
            known = any(1 <= line <= len(held) for held in files)
        else:
            known = any(line in text for held in files for text in held)
        if not known:
            raise ValueError(f"the kernel's files have no line {line!r}")


def _at(one: object, line: int | str | None) -> bool:
    return line is None or (one.line == line if isinstance(line, int) else line in one.text)


def _unit(quantity: str) -> str:
    """Return the unit of a quantity of accesses. Raises ValueError for an unknown quantity."""
    words = quantity.removesuffix(PER_REQUEST).split(maxsplit=2)
    if len(words) == 3 and words[0] in SPACES and words[1] in ACTIONS and words[2] in UNITS:
        return words[2]
    kinds = [f"{space} {action}" for space in SPACES for action in ACTIONS]
    known = [*TOTALS, *(f"{kind} {unit}" for kind in kinds for unit in UNITS)]
    near = difflib.get_close_matches(quantity, known, 1)
    guess = f"; did you mean '{near[0]}'?" if near else ""
    raise ValueError(
        f"no quantity '{quantity}'{guess} A quantity is one of {', '.join(TOTALS)}, or a kind of access such as "
        f"'global load' and one of {', '.join(UNITS)}"
    )
