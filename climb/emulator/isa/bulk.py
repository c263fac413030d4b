"""cp.async.bulk, cp.reduce.async.bulk, and the bulk groups by which threads wait for them."""

from __future__ import annotations

from dataclasses import replace

from .. import ptx
from .emitter import Emitter
from .mbarrier import barrier_site
from .registry import special
from .types import dtype

_MBARRIER = ".mbarrier::complete_tx::bytes"
#: The operations of a reduction and their types, in shared and in global memory. PTX ISA, cp.reduce.async.bulk.
_IN_SHARED = {
    "add": ("u32", "s32", "u64"), "min": ("u32", "s32"), "max": ("u32", "s32"), "inc": ("u32",), "dec": ("u32",),
    "and": ("b32",), "or": ("b32",), "xor": ("b32",),
}  # fmt: skip
_IN_GLOBAL = {
    "add": ("u32", "s32", "u64", "f32", "f64", "noftz.f16", "noftz.bf16"),
    "min": ("u32", "s32", "u64", "s64", "f16", "bf16"), "max": ("u32", "s32", "u64", "s64", "f16", "bf16"),
    "inc": ("u32",), "dec": ("u32",), "and": ("b32", "b64"), "or": ("b32", "b64"), "xor": ("b32", "b64"),
}  # fmt: skip


def range_site(emitter: Emitter, instruction: ptx.Instruction, operand: ptx.Address, space: str, action: str) -> str:
    """Return the site of a range that a bulk operation accesses in `space`."""
    site = emitter.site(replace(instruction, operands=(operand,)), space, action, dtype("u32"), 4)
    emitter.uncounted(site)  # the copy engine has counters of its own
    return site


def own_address(emitter: Emitter, operand: ptx.Address) -> str:
    """Return an address of shared memory, or of the window of the cluster."""
    return emitter.address(operand, "shared")


def _to_shared(emitter: Emitter, instruction: ptx.Instruction, cast: str, **_: str) -> None:
    target, source, nbytes, barrier, *rest = instruction.operands
    load = range_site(emitter, instruction, source, "global", "load")
    store = range_site(emitter, instruction, target, "shared", "store")
    word, address = barrier_site(emitter, instruction, barrier, ".shared")
    mask = emitter.read(rest[0], "u16") if cast else "None"
    places = f"{own_address(emitter, target)}, {emitter.address(source, 'global')}, {emitter.read(nbytes, 'u32')}"
    emitter.line(f"bulk_to_shared(G, {load}, {store}, {word}, {places}, {address}, {mask})")


special(
    "cp.async.bulk.{window}.global" + _MBARRIER + "{cast}", writes=0, window=("shared::cluster", "shared::cta"),
    cast=("", ".multicast::cluster"),
)(_to_shared)  # fmt: skip


def _between(emitter: Emitter, instruction: ptx.Instruction, how: str = "", t: str = "") -> None:
    target, source, nbytes, barrier = instruction.operands
    load = range_site(emitter, instruction, source, "shared", "load")
    store = range_site(emitter, instruction, target, "shared", "store")
    word, address = barrier_site(emitter, instruction, barrier, ".shared")
    places = f"{own_address(emitter, target)}, {own_address(emitter, source)}, {emitter.read(nbytes, 'u32')}"
    reduction = (how, t) if how else None
    emitter.line(f"bulk_between_shared(G, {load}, {store}, {word}, {places}, {address}, {reduction})")


special("cp.async.bulk.shared::cluster.shared::cta" + _MBARRIER, writes=0)(_between)
for _how, _types in _IN_SHARED.items():
    special(
        "cp.reduce.async.bulk.shared::cluster.shared::cta" + _MBARRIER + ".{how}.{t}", writes=0, how=(_how,), t=_types
    )(_between)


def _to_global(emitter: Emitter, instruction: ptx.Instruction, how: str = "", t: str = "", **_: str) -> None:
    target, source, nbytes, *_rest = instruction.operands
    load = range_site(emitter, instruction, source, "shared", "load")
    store = range_site(emitter, instruction, target, "global", "atomic" if how else "store")
    places = f"{emitter.address(target, 'global')}, {own_address(emitter, source)}, {emitter.read(nbytes, 'u32')}"
    reduction = (how, t.removeprefix("noftz.")) if how else None
    emitter.line(f"bulk_to_global(G, {load}, {store}, {places}, {reduction})")


special("cp.async.bulk.global.shared::cta.bulk_group", writes=0)(_to_global)
for _how, _types in _IN_GLOBAL.items():
    special("cp.reduce.async.bulk.global.shared::cta.bulk_group.{how}.{t}", writes=0, how=(_how,), t=_types)(_to_global)


@special("cp.async.bulk.prefetch.L2.global", writes=0)
def _prefetch(emitter: Emitter, instruction: ptx.Instruction, **_: str) -> None:
    source, nbytes, *_rest = instruction.operands
    load = range_site(emitter, instruction, source, "global", "load")
    emitter.line(f"bulk_prefetch(G, {load}, {emitter.address(source, 'global')}, {emitter.read(nbytes, 'u32')})")


@special("cp.async.bulk.commit_group", writes=0)
def _commit(emitter: Emitter, instruction: ptx.Instruction) -> None:
    emitter.line("bulk_commit(G)")


@special("cp.async.bulk.wait_group{read}", writes=0, read=("", ".read"))
def _wait(emitter: Emitter, instruction: ptx.Instruction, read: str) -> None:
    (pending,) = instruction.operands
    if not isinstance(pending, ptx.Immediate):
        emitter.refuse("the number of groups must be a constant")
    emitter.line(f"bulk_wait(G, {pending.value}, {bool(read)})")
