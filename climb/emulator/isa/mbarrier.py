"""mbarrier: barriers in shared memory, at which a thread may arrive first and wait later."""

from __future__ import annotations

from .. import ptx
from .emitter import Emitter
from .registry import special
from .types import dtype

WINDOW = {"window": (".shared", ".shared::cta")}


def _site(emitter: Emitter, instruction: ptx.Instruction) -> tuple[str, str]:
    """The barrier's site, whose accesses are not counted, and its address."""
    operand = next(each for each in instruction.operands if isinstance(each, ptx.Address))
    site = emitter.site(instruction, "shared", "atomic", dtype("u64"), 1)
    emitter.uncounted(site)
    return site, emitter.address(operand, "shared")


@special("mbarrier.init{window}.b64", writes=0, **WINDOW)
def _init(emitter: Emitter, instruction: ptx.Instruction, window: str) -> None:
    site, address = _site(emitter, instruction)
    emitter.line(f"mbarrier_init(G, {site}, {address}, {emitter.read(instruction.operands[1], 'u32')})")


@special("mbarrier.inval{window}.b64", writes=0, **WINDOW)
def _invalidate(emitter: Emitter, instruction: ptx.Instruction, window: str) -> None:
    """Write nothing: any store may reuse the word."""


@special(
    "mbarrier.arrive{drop}{full}{order}{window}.b64", results=("b64",), drop=("", "_drop"), full=("", ".noComplete"),
    order=("", ".release.cta", ".relaxed.cta", ".release.cluster", ".relaxed.cluster"), **WINDOW,
)  # fmt: skip
def _arrive(emitter: Emitter, instruction: ptx.Instruction, drop: str, **_: str) -> None:
    target, _, *count = instruction.operands
    site, address = _site(emitter, instruction)
    many = emitter.read(count[0] if count else ptx.Immediate(1), "u32")
    before = emitter.fresh(f"mbarrier_arrive(G, {site}, {address}, {many}, {bool(drop)})")
    if target != ptx.Register("_"):
        emitter.write(target, "u64", before)


@special(
    "mbarrier.{how}{parity}{order}{window}.b64", results=("pred",), waits=True, how=("test_wait", "try_wait"),
    parity=("", ".parity"), order=("", ".acquire.cta", ".relaxed.cta", ".acquire.cluster"), **WINDOW,
)  # fmt: skip
def _wait(emitter: Emitter, instruction: ptx.Instruction, parity: str, **_: str) -> None:
    target, _, phase, *_ = instruction.operands
    site, address = _site(emitter, instruction)
    what = emitter.read(phase, "u32" if parity else "u64")
    emitter.write(target, "pred", f"mbarrier_passed(G, {site}, {address}, {what}, {bool(parity)})")
