"""Clusters: their barrier, the addresses of distributed shared memory, and tests of address spaces."""

from __future__ import annotations

from .. import ptx
from .emitter import Emitter
from .registry import Rule, register, special

_WINDOWS = ("", ".shared::cluster")


@special("barrier.cluster.arrive{order}{aligned}", writes=0, order=("", ".release", ".relaxed"),
         aligned=("", ".aligned"))  # fmt: skip
def _arrive(emitter: Emitter, instruction: ptx.Instruction, order: str, **_: str) -> None:
    emitter.line(f"cluster_arrive(G, {emitter.place(instruction)}, {order != '.relaxed'})")


def _wait(emitter: Emitter, instruction: ptx.Instruction) -> None:
    """Write nothing: the scheduler does the waiting."""
    emitter.line("cluster_passed(G)")


register(
    "barrier.cluster.wait{order}{aligned}", rule=Rule(_wait, writes=0, gate="cluster"), order=("", ".acquire"),
    aligned=("", ".aligned"),
)  # fmt: skip


@special("mapa{window}.u{n}", results=("u{n}",), window=_WINDOWS, n=("32", "64"))
def _map(emitter: Emitter, instruction: ptx.Instruction, window: str, n: str) -> None:
    target, address, rank = instruction.operands
    where = f"{emitter.read(address, 'u' + n)}.astype(int64)"
    place = emitter.place(instruction)
    code = f"cluster_map(G, {place}, {where}, {emitter.read(rank, 'u32')}, {not window})"
    emitter.write(target, f"u{n}", f"{code}.astype(uint{n})")


@special("getctarank{window}.u{n}", results=("u32",), window=_WINDOWS, n=("32", "64"))
def _rank(emitter: Emitter, instruction: ptx.Instruction, window: str, n: str) -> None:
    """Write a result with the width of its register: cooperative groups give it 64 bits."""
    target, address = instruction.operands
    code = f"cluster_rank(G, {emitter.read(address, 'u' + n)}.astype(int64), {not window})"
    emitter.write_extended(target, "u32", f"{code}.astype(uint32)")


@special("isspacep.{space}", results=("pred",), operands=("s64",),
         space=("shared", "shared::cta", "shared::cluster"))  # fmt: skip
def _is_shared(emitter: Emitter, instruction: ptx.Instruction, space: str) -> None:
    target, address = instruction.operands
    code = f"cluster_is_shared(G, {emitter.read(address, 's64')}, {space == 'shared::cluster'})"
    emitter.write(target, "pred", code)


@special("isspacep.{space}", results=("pred",), operands=("s64",), space=("local", "param", "param::entry"))
def _is_in_window(emitter: Emitter, instruction: ptx.Instruction, space: str) -> None:
    target, address = instruction.operands
    value = emitter.read(address, "s64")
    base = f"{space.partition('::')[0].upper()}_WINDOW"
    emitter.write(target, "pred", f"({value} >= {base}) & ({value} < {base} + (LOCAL_WINDOW - SHARED_WINDOW))")


@special("isspacep.global", results=("pred",), operands=("s64",))
def _is_global(emitter: Emitter, instruction: ptx.Instruction) -> None:
    """Test for an address in no window; a pointer to constant memory counts as a pointer to global memory too."""
    target, address = instruction.operands
    value = emitter.read(address, "s64")
    code = f"({value} < SHARED_WINDOW) | ({value} >= PARAM_WINDOW + (LOCAL_WINDOW - SHARED_WINDOW))"
    emitter.write(target, "pred", code)
