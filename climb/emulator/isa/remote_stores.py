"""st.async and red.async: stores and reductions in the shared memory of a block of the cluster, which complete on an
mbarrier of that block. PTX ISA, sections "st.async" and "red.async"."""

from __future__ import annotations

from dataclasses import replace

from .. import ptx
from .emitter import Emitter
from .mbarrier import barrier_site
from .registry import special
from .types import dtype

_REST = ".shared::cluster.mbarrier::complete_tx::bytes"
_TYPES = ("b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64")
_REDUCTIONS = {
    "add": ("u32", "s32", "u64"), "min": ("u32", "s32"), "max": ("u32", "s32"), "inc": ("u32",), "dec": ("u32",),
    "and": ("b32",), "or": ("b32",), "xor": ("b32",),
}  # fmt: skip


def _emit(emitter: Emitter, instruction: ptx.Instruction, kind: str, how: str) -> None:
    target, source, barrier = instruction.operands
    items = source.items if isinstance(source, ptx.Vector) else (source,)
    action = "atomic" if how else "store"
    kept = replace(instruction, operands=(target,))
    site = emitter.site(kept, "shared", action, dtype(kind), len(items))
    word, at = barrier_site(emitter, instruction, barrier, ".shared::cluster")
    read = [emitter.read(item, kind) for item in items]
    values = read[0] if len(items) == 1 else f"({', '.join(read)})"
    where = emitter.address(target, "cluster")
    emitter.line(f"remote_store(G, {site}, {word}, {where}, {values}, {at}, {how!r})")


def _plain(kind: str) -> str:
    return "u" + kind[1:] if kind[0] == "b" else kind


@special("st.async{weak}" + _REST + "{vector}.{t}", writes=0, weak=("", ".weak"), vector=("", ".v2"), t=_TYPES)
@special("st.async{weak}" + _REST + "{vector}.{t}", writes=0, weak=("", ".weak"), vector=(".v4",), t=_TYPES[:4])
def _store(emitter: Emitter, instruction: ptx.Instruction, t: str, **_: str) -> None:
    _emit(emitter, instruction, _plain(t), "")


def _reduce(emitter: Emitter, instruction: ptx.Instruction, how: str, t: str) -> None:
    _emit(emitter, instruction, _plain(t), how)


for _how, _types in _REDUCTIONS.items():
    special("red.async.relaxed.cluster" + _REST + ".{how}.{t}", writes=0, how=(_how,), t=_types)(_reduce)
