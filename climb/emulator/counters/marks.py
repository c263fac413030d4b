"""Marks: source lines on which the machine code accesses memory differently from the PTX that the emulator runs.

ptxas merges neighbouring loads into a wider one, turns branches into predicates, drops a load whose value it already
has, and spills registers to local memory. The emulator counts the accesses of the PTX. A mark warns that the hardware
may count differently on a line, because its memory instructions differ in number or width.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..simt.code import Code

if TYPE_CHECKING:
    from climb.toolchain.sass import Instruction

_KINDS = {
    "LDG": "global load", "STG": "global store", "LDS": "shared load", "LDSM": "shared load",
    "STS": "shared store", "STSM": "shared store", "LDL": "local load",
    "STL": "local store", "LD": "generic load", "ST": "generic store", "ATOMG": "global atomic",
    "RED": "global atomic", "REDG": "global atomic", "ATOM": "generic atomic", "ATOMS": "shared atomic",
}  # fmt: skip
#: An asynchronous copy is one instruction with two accesses.
_COPY = ("LDGSTS", ("global load", "shared store"))
_ACTIONS = frozenset(kind.split()[1] for kind in _KINDS.values())
_WIDTH = re.compile(r"(?<![A-Z0-9])[SUF]?(8|16|32|64|128)(?![0-9])")


@dataclass(frozen=True, eq=False)
class Mark:
    """One kind of access on one source line: the number of instructions of each width (in bytes) in PTX and in SASS.

    `loop`: shared memory lacks this atomic, so ptxas turned it into a loop; lanes that collide repeat the loop.
    """

    file: str
    line: int
    kind: str
    ptx: dict[int, int]
    sass: dict[int, int]
    loop: bool = False

    @property
    def changes(self) -> bool:
        """Return whether the hardware's counts may differ even if each warp stays together. Counts do not change if the
        machine code only has more instructions of the same widths: a loop was unrolled, so each instruction runs less
        often."""
        return (
            self.loop
            or set(self.ptx) != set(self.sass)
            or any(self.sass[width] < self.ptx[width] for width in self.ptx)
        )

    @property
    def copied(self) -> bool:
        """Return whether the machine code has more instructions of the same widths: a loop was unrolled, or a path
        copied."""
        return not self.changes and sum(self.sass.values()) > sum(self.ptx.values())

    @property
    def reason(self) -> str:
        """The change that ptxas made, inferred from the two lists of widths."""
        if self.loop:
            return "a loop of compare-and-swap"
        if not self.ptx:
            return "registers spilled to local memory" if self.kind.startswith("local") else "not in the PTX"
        if not self.sass:
            return "gone from the machine code, or merged into another line's"
        if max(self.sass) > max(self.ptx):
            return f"merged into accesses of {max(self.sass)} bytes"
        if not self.changes:
            return "a loop unrolled, or a path copied"
        if _bytes(self.sass) < _bytes(self.ptx):
            return "fewer in the machine code: values used again, or paths joined"
        return "split into narrower accesses"

    def __str__(self) -> str:
        return f"{self.line}, {self.kind}: {self.reason} (PTX {_listed(self.ptx)}; SASS {_listed(self.sass)})"


def _bytes(widths: dict[int, int]) -> int:
    return sum(width * number for width, number in widths.items())


def _listed(widths: dict[int, int]) -> str:
    return ", ".join(f"{number} x {width} B" for width, number in sorted(widths.items())) or "none"


def marks(code: Code, sass: Sequence[Instruction]) -> tuple[Mark, ...]:
    """List the lines of a kernel on which PTX and machine code access memory differently, in source order."""
    static: dict[tuple[str, int, str], Counter] = {}
    distributed: set[tuple[str, int]] = set()  # lines that access shared memory of the cluster, by generic instructions
    for site in code.sites:
        if "shared::cluster" in site.ptx:
            distributed.add((site.location.file, site.location.line))
        elif site.action in _ACTIONS and site.space not in ("const", "param") and not site.part:
            key = (site.location.file, site.location.line, f"{site.space or 'generic'} {site.action}")
            static.setdefault(key, Counter())[site.width] += 1
    machine: dict[tuple[str, int, str], Counter] = {}
    loops: set[tuple[str, int, str]] = set()
    for one in sass:
        if one.predicate == "@!PT":
            continue  # it never executes
        kinds = _COPY[1] if one.mnemonic == _COPY[0] else (_KINDS.get(one.mnemonic),)
        loops |= {(one.file, one.line, kind) for kind in kinds if ".CAST.SPIN" in one.opcode}
        for kind in filter(None, kinds):
            if kind.startswith("generic") and (one.file, one.line) in distributed:
                continue
            machine.setdefault((one.file, one.line, kind), Counter())[_width(one.opcode)] += 1
    out = []
    for key in sorted({*static, *machine}):
        asked, made = static.get(key, {}), machine.get(key, {})
        if dict(asked) != dict(made) or key in loops:
            out.append(Mark(*key, dict(asked), dict(made), key in loops))
    return tuple(out)


def after_suspension(sass: Sequence[Instruction]) -> set[tuple[str, int, str]]:
    """Return the accesses (file, line, kind) behind a branch in which lanes are suspended, up to the next
    synchronisation.

    A warp whose lanes diverge waits for them at the end of the branch (BSYNC), but not for lanes that were suspended
    there in a wait: by mbarrier.try_wait or nanosleep.
    """
    found: set[tuple[str, int, str]] = set()
    suspended = apart = False
    for one in sass:
        if one.mnemonic in ("BAR", "WARPSYNC", "WARPGROUP"):
            suspended = apart = False
        elif "TRYWAIT" in one.opcode or one.mnemonic == "NANOSLEEP":
            suspended = True
        elif one.mnemonic == "BSYNC":
            apart = apart or suspended
        elif apart and (kind := _KINDS.get(one.mnemonic)):
            found.add((one.file, one.line, kind))
    return found


def _width(opcode: str) -> int:
    """Return the bytes of an access of this opcode: LDG.E.128 has 16, ATOMS.ADD.64 has 8, an opcode without a number
    has 4.

    The numbers in LDSM and STSM describe matrices; they move rows of 16 bytes.
    """
    if opcode.startswith(("LDSM", "STSM")):
        return 16
    found = _WIDTH.search(opcode.split(".", 1)[1]) if "." in opcode else None
    return int(found[1]) // 8 if found else 4
