"""mbarrier: barriers in shared memory, at which a thread may arrive first and wait later, and which count bytes."""

from __future__ import annotations

from .. import ptx
from .emitter import Emitter
from .registry import special
from .types import dtype

#: A generic address, or an address in the window of the block or of the cluster.
OWN = {"window": ("", ".shared", ".shared::cta")}
ANY = {"window": ("", ".shared", ".shared::cta", ".shared::cluster")}
ORDER = ("", *(f".{order}.{scope}" for order in ("release", "relaxed") for scope in ("cta", "cluster")))
ACQUIRE = ("", *(f".{order}.{scope}" for order in ("acquire", "relaxed") for scope in ("cta", "cluster")))
NONE = ptx.Register("_")


def barrier_site(emitter: Emitter, instruction: ptx.Instruction, operand: ptx.Address, window: str) -> tuple[str, str]:
    """Return the site of the mbarrier at `operand`, whose accesses are not counted, and its shared address."""
    kept = ptx.Instruction(instruction.opcode, (operand,), instruction.location, instruction.guard, instruction.text)
    site = emitter.site(kept, "shared", "atomic", dtype("u64"), 1)
    emitter.uncounted(site)
    address = emitter.address(operand, "shared")
    generic = not window and isinstance(operand.base, ptx.Register) and emitter.kind(operand.base.name)[1:] == "64"
    return site, f"({address} - SHARED_WINDOW)" if generic else address


def _operand(instruction: ptx.Instruction) -> ptx.Address:
    return next(each for each in instruction.operands if isinstance(each, ptx.Address))


@special("mbarrier.init{window}.b64", writes=0, **OWN)
def _init(emitter: Emitter, instruction: ptx.Instruction, window: str) -> None:
    site, address = barrier_site(emitter, instruction, _operand(instruction), window)
    emitter.line(f"mbarrier_init(G, {site}, {address}, {emitter.read(instruction.operands[1], 'u32')})")


@special("mbarrier.inval{window}.b64", writes=0, **OWN)
def _invalidate(emitter: Emitter, instruction: ptx.Instruction, window: str) -> None:
    site, address = barrier_site(emitter, instruction, _operand(instruction), window)
    emitter.line(f"mbarrier_invalidate(G, {site}, {address})")


def _change(
    emitter: Emitter, instruction: ptx.Instruction, window: str, target: ptx.Operand | None, *parts: str
) -> None:
    """Arrive with `parts`: arrivals, expected bytes, whether it drops, whether the phase may end."""
    site, address = barrier_site(emitter, instruction, _operand(instruction), window)
    before = emitter.fresh(f"mbarrier_arrive(G, {site}, {address}, {', '.join(parts)})")
    if target is not None and target != NONE:
        if window == ".shared::cluster":
            emitter.refuse("an arrival in the window shared::cluster returns no state; write _ in its place")
        emitter.write(target, "u64", before)


@special(
    "mbarrier.arrive{drop}{full}{order}{window}.b64", results=("b64",), drop=("", "_drop"), full=("", ".noComplete"),
    order=ORDER, **ANY,
)  # fmt: skip
def _arrive(emitter: Emitter, instruction: ptx.Instruction, drop: str, full: str, window: str, **_: str) -> None:
    target, _, *count = instruction.operands
    many = emitter.read(count[0] if count else ptx.Immediate(1), "u32")
    _change(emitter, instruction, window, target, many, "None", f"{bool(drop)}", f"{not full}")


@special(
    "mbarrier.arrive{drop}.expect_tx{order}{window}.b64", results=("b64",), drop=("", "_drop"), order=ORDER, **ANY
)  # fmt: skip
def _arrive_and_expect(emitter: Emitter, instruction: ptx.Instruction, drop: str, window: str, **_: str) -> None:
    target, _, nbytes = instruction.operands
    one = emitter.read(ptx.Immediate(1), "u32")
    _change(emitter, instruction, window, target, one, emitter.read(nbytes, "u32"), f"{bool(drop)}", "True")


@special(
    "mbarrier.{how}{order}{window}.b64", writes=0, how=("expect_tx", "complete_tx"),
    order=("", ".relaxed.cta", ".relaxed.cluster"), **ANY,
)  # fmt: skip
def _transaction(emitter: Emitter, instruction: ptx.Instruction, how: str, window: str, **_: str) -> None:
    sign = "-" if how == "complete_tx" else ""
    nbytes = f"{sign}{emitter.read(instruction.operands[1], 'u32')}.astype(int64)"
    _change(emitter, instruction, window, None, "None", nbytes, "False", "True")


@special("mbarrier.pending_count.b64", results=("u32",), operands=("u64",))
def _pending(emitter: Emitter, instruction: ptx.Instruction) -> None:
    target, state = instruction.operands
    emitter.write(target, "u32", f"mbarrier_pending({emitter.read(state, 'u64')})")


@special(
    "mbarrier.{how}{parity}{order}{window}.b64", results=("pred",), waits=True, how=("test_wait", "try_wait"),
    parity=("", ".parity"), order=ACQUIRE, **OWN,
)  # fmt: skip
def _wait(emitter: Emitter, instruction: ptx.Instruction, parity: str, window: str, **_: str) -> None:
    """Emit a wait. The time limit of try_wait is a hint: it waits no longer than test_wait."""
    target, _, which, *_ = instruction.operands
    site, address = barrier_site(emitter, instruction, _operand(instruction), window)
    value = emitter.read(which, "u32" if parity else "u64")
    emitter.write(target, "pred", f"mbarrier_passed(G, {site}, {address}, {value}, {bool(parity)})")
