"""mbarrier: barriers in shared memory, of which a thread may arrive first and wait later."""

from __future__ import annotations

import itertools

from .. import ptx
from . import special
from .types import dtype

WINDOWS = (".shared", ".shared::cta")
ORDERS = ("", ".release.cta", ".relaxed.cta", ".release.cluster", ".relaxed.cluster")


def _site(emitter, instruction: ptx.Instruction) -> tuple[str, str]:
    """The barrier's site, whose accesses count as none, and its address."""
    operand = next(each for each in instruction.operands if isinstance(each, ptx.Address))
    site = emitter.site(instruction, "shared", "atomic", dtype("u64"), 1)
    emitter.uncounted(site)
    return site, emitter.address(operand, "shared")


def _init(emitter, instruction: ptx.Instruction) -> None:
    site, address = _site(emitter, instruction)
    emitter.line(f"mbarrier_init(G, {site}, {address}, {emitter.read(instruction.operands[1], 'u32')})")


def _nothing(emitter, instruction: ptx.Instruction) -> None:
    """mbarrier.inval: the word may be used for something else, which a store does."""


def _arrive(emitter, instruction: ptx.Instruction) -> None:
    target, _, *count = instruction.operands
    site, address = _site(emitter, instruction)
    many = emitter.read(count[0] if count else ptx.Immediate(1), "u32")
    drop = instruction.opcode.startswith("mbarrier.arrive_drop")
    before = emitter.fresh(f"mbarrier_arrive(G, {site}, {address}, {many}, {drop})")
    if target != ptx.Register("_"):
        emitter.write(target, "u64", before)


def _wait(emitter, instruction: ptx.Instruction) -> None:
    target, _, phase, *_ = instruction.operands
    site, address = _site(emitter, instruction)
    parity = ".parity" in instruction.opcode
    what = emitter.read(phase, "u32" if parity else "u64")
    emitter.write(target, "pred", f"mbarrier_passed(G, {site}, {address}, {what}, {parity})")


for _window in WINDOWS:
    special(f"mbarrier.init{_window}.b64", writes=0)(_init)
    special(f"mbarrier.inval{_window}.b64", writes=0)(_nothing)
    for _order in ORDERS:
        for _kind, _full in itertools.product(("arrive", "arrive_drop"), ("", ".noComplete")):
            special(f"mbarrier.{_kind}{_full}{_order}{_window}.b64", results=("b64",))(_arrive)
    for _how, _parity in itertools.product(("test_wait", "try_wait"), ("", ".parity")):
        for _order in ("", ".acquire.cta", ".relaxed.cta", ".acquire.cluster"):
            _name = f"mbarrier.{_how}{_parity}{_order}{_window}.b64"
            special(_name, results=("pred",), waits=True)(_wait)
