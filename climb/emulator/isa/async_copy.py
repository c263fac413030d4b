"""cp.async: asynchronous copies from global to shared memory, and waiting for them."""

from __future__ import annotations

from dataclasses import replace

from .. import ptx
from .emitter import Emitter
from .mbarrier import OWN, barrier_site
from .registry import special
from .types import dtype

SIZES = {"ca": (4, 8, 16), "cg": (16,)}


@special(
    "cp.async.{cache}.{window}.global{prefetch}", writes=0, cache=tuple(SIZES), window=("shared", "shared::cta"),
    prefetch=("", ".L2::64B", ".L2::128B", ".L2::256B"),
)  # fmt: skip
def _copy(emitter: Emitter, instruction: ptx.Instruction, cache: str, **_: str) -> None:
    target, source, width, *rest = instruction.operands
    sizes = SIZES[cache]
    if not isinstance(width, ptx.Immediate) or width.value not in sizes:
        emitter.refuse(f"the size of a copy must be one of the constants {', '.join(map(str, sizes))}")
    present = "None"
    if rest:
        if isinstance(rest[0], ptx.Register) and emitter.kind(rest[0].name) == "pred":
            emitter.refuse("ignore-src is not supported")
        if not isinstance(rest[0], ptx.Immediate) or rest[0].value != width.value:
            present = emitter.read(rest[0], "u32")
    element, count = (dtype("u64"), 1) if width.value == 8 else (dtype("u32"), width.value // 4)
    load = emitter.site(replace(instruction, operands=(source,)), "global", "load", element, count)
    store = emitter.site(replace(instruction, operands=(target,)), "shared", "store", element, count)
    addresses = f"{emitter.address(source, 'global')}, {emitter.address(target, 'shared')}"
    emitter.line(f"copy_begin(G, {load}, {store}, {addresses}, {present})")


@special("cp.async.commit_group", writes=0)
def _commit(emitter: Emitter, instruction: ptx.Instruction) -> None:
    emitter.line("copy_commit(G)")


@special("cp.async.wait_group", writes=0)
def _wait_group(emitter: Emitter, instruction: ptx.Instruction) -> None:
    (pending,) = instruction.operands
    if not isinstance(pending, ptx.Immediate):
        emitter.refuse("the number of groups must be a constant")
    emitter.line(f"copy_wait(G, {pending.value}, {emitter.place(instruction)})")


@special("cp.async.wait_all", writes=0)
def _wait_all(emitter: Emitter, instruction: ptx.Instruction) -> None:
    emitter.line("copy_commit(G)")
    emitter.line(f"copy_wait(G, 0, {emitter.place(instruction)})")


@special("cp.async.mbarrier.arrive{noinc}{window}.b64", writes=0, noinc=("", ".noinc"), **OWN)
def _arrive(emitter: Emitter, instruction: ptx.Instruction, noinc: str, window: str) -> None:
    site, address = barrier_site(emitter, instruction, instruction.operands[0], window)
    emitter.line(f"copy_arrive(G, {site}, {address}, {bool(noinc)})")
